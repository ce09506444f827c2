#!/usr/bin/env python3
"""The page of `anyccl explore` in Chromium: it says what the tool says, can be used, and needs nothing else.

page_test.py TOOL [PART PARTS | TEST...]
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from browser import Browser  # noqa: E402
from traces import write_job, write_trace  # noqa: E402

TOOL = Path(sys.argv[1]).resolve()
MOST_BYTES = 2_000_000


def tool(*words):
    return subprocess.run([TOOL, *map(str, words)], check=True, capture_output=True, text=True).stdout


def drawn(algorithm, *flags):
    """The output of anyccl draw: the line about the whole, and the rows of its table of messages."""
    head, _, rest = tool("draw", algorithm, *flags).partition("\n")
    moves = rest.strip().split("\n\n")[-1].splitlines()[1:]
    return head, [re.split(r" {2,}", row.strip()) for row in moves]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = Path(cls.folder.name, "explorer.html")
        tool("explore", "-o", cls.file)
        cls.browser = Browser()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.prefer(prefers_reduced_motion="reduce")
        self.browser.resize(1400, 1000)
        self.browser.requests.clear()
        self.browser.open(f"{self.file.as_uri()}#all_reduce/ring/4/0?language=en")

    def tearDown(self):
        problems, self.browser.problems = self.browser.problems, []
        self.assertEqual(problems, [])

    def value(self, expression):
        return self.browser.evaluate(expression)

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).textContent")

    def rows(self, table):
        return self.value(f"[...document.querySelectorAll('#{table} tbody tr')].map(r => [...r.cells].map(c => c.textContent))")

    def test_says_what_draw_says(self):
        shapes = [("all_reduce/ring", 4), ("all_reduce/halving_doubling", 8), ("all_reduce/double_binary_tree", 7),
                  ("all_to_all/bruck", 6), ("barrier/dissemination", 5), ("scan/recursive_doubling", 6),
                  ("broadcast/pipelined_tree", 16), ("reduce/binomial", 5)]
        for algorithm, ranks in shapes:
            for root in (0, 1) if algorithm.startswith(("broadcast", "reduce/")) else (0,):
                with self.subTest(algorithm=algorithm, ranks=ranks, root=root):
                    flags = ["--root", root] if root else []
                    head, rows = drawn(algorithm, "-n", ranks, *flags)
                    self.browser.go(f"#{algorithm}/{ranks}/1?root={root}&language=en")
                    self.value("document.getElementById('whole').checked || document.getElementById('whole').click()")
                    self.assertEqual(self.text("#summary"), head)
                    self.assertEqual([row[:6] for row in self.rows("messages")], rows)

    def test_says_what_draw_says_of_several_hosts(self):
        head, rows = drawn("all_reduce/two_level", "-n", 8, "--hosts", "4,4")
        self.browser.go("#all_reduce/two_level/8/1?hosts=4&language=en")
        self.value("document.getElementById('whole').click()")
        self.assertEqual(self.text("#summary"), head)
        self.assertEqual([row[:6] for row in self.rows("messages")], rows)

    def test_says_what_simulate_says(self):
        for algorithm, ranks, size, topology in [("all_reduce/ring", 8, "1M", "torus"), ("all_to_all/direct", 16, "64M", "fat-tree:k=4,taper=2"),
                                                 ("broadcast/double_binary_tree", 7, "1K", "rails:devices=4")]:
            with self.subTest(algorithm=algorithm, size=size, topology=topology):
                run = json.loads(tool("simulate", algorithm, "-n", ranks, "-b", size, "--topology", topology, "--json"))["rows"][0]
                self.browser.go(f"#{algorithm}/{ranks}/1?bytes={size}&topology={topology}&language=en")
                us = float(re.search(r"The collective takes ([0-9.]+) us", self.text("#model"))[1])
                self.assertAlmostEqual(us, run["us"], delta=0.0011)
                self.assertIn("uncalibrated", self.text("#model"))
                self.assertEqual(int(self.rows("loads")[0][3]), round(run["busiest_link_bytes"]))
                self.value("document.getElementById('whole').checked || document.getElementById('whole').click()")
                self.assertEqual(sum(row[1] != "-" for row in self.rows("messages")), run["messages"])

    def test_says_what_simulate_says_of_other_placements(self):
        page = Path(self.folder.name, "placed.html")
        tool("explore", "all_reduce/ring", "-n", "8,12", "--placement", "linear,random:1,random:7", "--topology", "torus", "fat-tree:k=4,taper=2", "-o", page)
        for ranks, topology in ((8, "torus"), (12, "fat-tree:k=4,taper=2")):
            for placement in ("linear", "random:1", "random:7"):
                with self.subTest(topology=topology, placement=placement):
                    run = json.loads(tool("simulate", "all_reduce/ring", "-n", ranks, "-b", "1M", "--topology", topology,
                                          "--placement", placement, "--json"))["rows"][0]
                    self.browser.open(f"{page.as_uri()}#all_reduce/ring/{ranks}/1?bytes=1M&topology={topology}&placement={placement}&language=en")
                    us = float(re.search(r"The collective takes ([0-9.]+) us", self.text("#model"))[1])
                    self.assertAlmostEqual(us, run["us"], delta=0.0011)
                    self.assertEqual(int(self.rows("loads")[0][3]), round(run["busiest_link_bytes"]))
                    self.assertEqual(self.value("document.getElementById('placement').value"), placement)
                    self.assertIn("rank i is at end i" if placement == "linear" else f"ranks are placed {placement}", self.text("#network-name"))
                    shown = self.value("[...document.querySelectorAll('#network circle.node + text')].map((t) => +t.textContent)")
                    self.assertEqual(sorted(shown), list(range(ranks)))
                    self.assertEqual(shown == list(range(ranks)), placement == "linear")

    def test_placement_is_a_choice_where_there_are_several(self):
        hidden = "document.getElementById('placement').closest('label').hidden"
        self.assertFalse(self.value(hidden))
        self.value("""(() => { const select = document.getElementById('placement'); select.value = 'random:1';
            select.dispatchEvent(new Event('change')); })()""")
        self.assertEqual(self.value("location.hash"), "#all_reduce/ring/4/0?placement=random:1&language=en")
        page = Path(self.folder.name, "linear.html")
        tool("explore", "all_reduce/ring", "-n", 4, "--placement", "linear", "-o", page)
        self.browser.open(page.as_uri())
        self.assertTrue(self.value(hidden))

    def test_placements_that_are_none_are_refused(self):
        run = subprocess.run([TOOL, "explore", "ring", "--placement", "here", "-o", "/dev/null"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("'here' is no placement", run.stderr)

    def recorded_page(self):
        """Of a ring for which rank 1 comes 40 us late, a message, and a call that has not ended when the trace is written."""
        ring = {"algorithm": "all_reduce/ring", "protocol": "Simple"}
        with tempfile.TemporaryDirectory() as folder:
            write_trace(folder, 0, [("all_reduce", 1, 1000, 1060, ring), ("send", 0, 1100, 1110, {"peer": 1}), ("barrier", 2, 1500, 0, {})])
            write_trace(folder, 1, [("all_reduce", 1, 1040, 1061, ring), ("recv", 0, 1070, 1112, {"peer": 0})])
            page = Path(self.folder.name, "recorded.html")
            tool("explore", "--trace", folder, "-o", page)
        return page

    def test_shows_what_was_recorded(self):
        self.browser.open(f"{self.recorded_page().as_uri()}#all_reduce/two_shot/2/1?language=en")
        self.assertEqual(self.text("#recorded-communicator"), "Measured by 2 of 2 ranks: 4 operations; 3 earlier calls left out.")
        ring = "all_reduce, 1 MiB, ring, Simple"
        self.assertEqual(self.rows("recorded-calls"), [
            ["1", "0", ring, "0", "60", "40", "1"], ["1", "1", ring, "40", "61", "0", ""],
            ["2", "1", "recv, 1 MiB", "70", "112", "0", ""], ["3", "0", "send, 1 MiB", "100", "110", "0", ""],
            ["4", "0", "barrier, 1 MiB", "500", "900", "0", ""]])  # rank 1 has lost its first messages
        self.assertIn(f"Operation 1, {ring}: 61 us from its first begin to its last end; 21 us after rank 1 came last", self.text("#recorded-words"))
        self.assertNotIn("predicts", self.text("#recorded-words"))
        self.assertEqual(self.value("document.querySelectorAll('#recorded .flight').length"), 1)
        self.browser.resize(360, 800)
        self.assertLessEqual(self.value("document.documentElement.scrollWidth"), 360)
        self.assertEqual(self.value("[DATA.bytes, DATA.algorithms[0].variants.map((v) => v.ranks)]"), [[1 << 20], [2]])

    def test_recorded_messages_have_arrows(self):
        with tempfile.TemporaryDirectory() as folder:
            write_trace(folder, 0, [("send", 0, 1100, 1110, {"peer": 1})])
            write_trace(folder, 1, [("recv", 0, 1070, 1112, {"peer": 0})])
            lost = Path(folder, "trace-c0ffee-1.json")
            lost.write_text(lost.read_text().replace('"left_out": 3', '"left_out": 0'))
            page = Path(self.folder.name, "messages.html")
            tool("explore", "ring", "--trace", folder, "-o", page)
        self.browser.open(f"{page.as_uri()}#?language=en")
        self.assertEqual([row[5:] for row in self.rows("recorded-calls")], [["0", ""], ["30", "0"]])
        self.assertEqual(self.value("document.querySelector('#recorded .flights title').textContent"), "a message from rank 0 to rank 1")

    def test_recorded_operations_lead_to_their_rounds(self):
        page = self.recorded_page()
        self.browser.open(f"{page.as_uri()}#all_reduce/two_shot/2/1?language=en")
        self.value("document.getElementById('operations').focus()")
        self.browser.press("ArrowDown")
        self.assertEqual(self.value("location.hash"), "#all_reduce/two_shot/2/1?operations=16&language=en")
        self.browser.click("#recorded-rounds")
        self.assertEqual(self.value("location.hash"), "#all_reduce/ring/2/1?bytes=1M&operations=16&language=en")
        self.assertIn("the time line above predicts", self.text("#recorded-words"))
        self.value("""(() => { const first = document.getElementById('operation'); first.value = '4';
            first.dispatchEvent(new Event('change')); })()""")
        self.assertEqual([row[0] for row in self.rows("recorded-calls")], ["4"])
        self.assertTrue(self.value("document.getElementById('recorded-rounds').hidden"))
        self.browser.go("#all_reduce/ring/2/1?operation=99&language=en")  # there are not so many
        self.assertEqual([row[0] for row in self.rows("recorded-calls")], ["4"])

    def test_recorded_operations_lead_to_the_rounds_of_their_root_and_hosts(self):
        page, tree, levels = Path(self.folder.name, "job.html"), "#broadcast/binomial/4/1?", "#all_reduce/two_level/4/1?"
        for hosts, operation, at, to in [("aaaa", 1, tree + "root=1&", tree), ("aaaa", 2, tree, None), ("aaaa", 3, levels + "hosts=2&", levels),
                                         ("aabb", 3, levels, levels + "hosts=2&"), ("aaab", 3, levels, None)]:
            with self.subTest(hosts=hosts, operation=operation), tempfile.TemporaryDirectory() as folder:
                write_job(folder, hosts)
                tool("explore", "broadcast/binomial", "two_level", "--trace", folder, "-o", page)
                self.browser.open(f"{page.as_uri()}{at}operation={operation}&language=en")
                self.assertNotIn("predicts", self.text("#recorded-words"))
                self.assertEqual(self.value("document.getElementById('recorded-rounds').hidden"), to is None)
                if to:
                    self.browser.click("#recorded-rounds")
                    self.assertEqual(self.value("location.hash"), f"{to}bytes=1M&operation={operation}&language=en")

    def test_long_traces_keep_their_ends(self):
        page = Path(self.folder.name, "long.html")
        with tempfile.TemporaryDirectory() as folder:
            for rank in (0, 1):
                write_trace(folder, rank, [("barrier", i + 1, 10 * (i + 1) + rank, 10 * (i + 1) + 5, {}) for i in range(30000)])
            tool("explore", "--trace", folder, "-o", page)
        self.browser.open(f"{page.as_uri()}#?operation=20000&operations=1&language=en")
        self.assertEqual(self.text("#recorded-communicator"), "Measured by 2 of 2 ranks: 20000 operations; 20003 earlier calls left out.")
        self.assertEqual([row[3:6] for row in self.rows("recorded-calls")], [["0", "5", "1"], ["1", "5", "0"]])
        self.assertLessEqual(page.stat().st_size, MOST_BYTES)

    def test_traces_of_others_may_have_other_words(self):
        with tempfile.TemporaryDirectory() as folder:
            write_trace(folder, 0, [("<b>", 1, 10, 20, {"algorithm": 5, "protocol": None})], size=1)
            page = Path(self.folder.name, "others.html")
            tool("explore", "ring", "--trace", folder, "-n", 2, "-o", page)
        self.browser.open(f"{page.as_uri()}#?language=en")
        self.assertEqual([row[2] for row in self.rows("recorded-calls")], ["<b>, 1 MiB"])

    def test_page_without_traces_says_nothing_of_them(self):
        self.assertTrue(self.value("document.getElementById('recorded-section').hidden"))

    def test_files_that_are_no_traces_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "trace-1-0.json").write_text("{}")
            run = subprocess.run([TOOL, "explore", "ring", "--trace", folder, "-o", "/dev/null"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("trace-1-0.json: it is no trace", run.stderr)

    def test_every_variant_ends_with_the_results(self):
        """Of each rank, what it has after the last round holds its result; and messages and waits end after they begin."""
        for id in self.value("DATA.algorithms.map((a) => a.id)"):
            wrong = self.value(f"""(({{ variants, ...algorithm }}) => variants.filter((variant) => {{
                const m = readMovement(algorithm, variant), last = holdings(m, m.rounds);
                const results = m.after.every((chunks, rank) => chunks.every((chunk) =>
                    last[rank].some((c) => c.isResult && c.number === chunk.number && isSame(c.ranks, chunk.ranks))));
                const times = readTimes(m, DATA.topologies.length - 1, 0, DATA.bytes.length - 1);
                const spans = [...times.messages, ...times.waits.flat()];
                return !results || spans.some(({{ begin, end }}) => !(begin >= 0 && begin <= end && end <= times.total));
            }}).map((v) => v.ranks))(DATA.algorithms.find((a) => a.id === '{id}'))""")
            self.assertEqual(wrong, [], id)

    def test_every_algorithm_can_be_drawn(self):
        # Hidden, and as wide as when it is shown: the browser need not lay out each picture.
        self.value("""(() => {
            const moves = document.getElementById('moves');
            Object.defineProperty(moves, 'clientWidth', { value: moves.clientWidth });
            document.getElementById('views').style.display = 'none';
        })()""")
        for id in self.value("DATA.algorithms.map((a) => a.id)"):
            bad = self.value(f"""(() => {{
                const {{ variants }} = DATA.algorithms.find((a) => a.id === '{id}'), bad = [];
                for (const variant of [variants[0], variants[variants.length - 1]])
                  for (const round of [1, variant.cost[0]]) {{
                    wish = wishOf(`#{id}/${{variant.ranks}}/${{round}}?hosts=${{variant.ranksPerHost}}&root=${{variant.root}}`);
                    chosen = chosenFrom(wish);
                    showAll();
                    const html = document.getElementById('views').innerHTML;
                    if (/NaN|undefined|Infinity|null/.test(html)) bad.push(`${{variant.ranks}} ${{round}}`);
                  }}
                return bad;
            }})()""")
            self.assertEqual(bad, [], id)

    def test_knows_more_ranks_than_a_number_has_bits_for(self):
        page = Path(self.folder.name, "many.html")
        tool("explore", "all_reduce/recursive_doubling", "-n", 32, "-b", 8, "-o", page)
        self.browser.open(f"{page.as_uri()}#all_reduce/recursive_doubling/32/5?language=en")
        everyone = "+".join(map(str, range(32)))
        self.assertEqual({row[2] for row in self.rows("memory")}, {f"0 of {everyone}"})

    def test_keys_step_through_the_rounds(self):
        steps = [("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 6), ("ArrowRight", 6), ("Home", 0), ("ArrowLeft", 0)]
        for key, round in steps:
            self.browser.press(key)
            self.assertEqual(self.value("location.hash"), f"#all_reduce/ring/4/{round}?language=en", key)
        self.browser.press("ArrowRight")
        self.assertIn("Round 1 of 6: rank 0 sends chunk 0 of rank 0 to rank 1;", self.text("#live"))

    def test_keys_of_a_control_are_its_own(self):
        self.value("document.getElementById('ranks').focus()")
        self.browser.press("ArrowDown")
        self.assertEqual(self.value("location.hash"), "#all_reduce/ring/5/0?language=en")

    def test_a_wide_picture_scrolls_by_keys_if_keys_led_to_it(self):
        self.browser.go("#all_reduce/ring/16/1?language=en")
        self.browser.resize(600, 800)
        self.value("document.getElementById('keys').scrollIntoView(), document.getElementById('speed').focus()")
        self.browser.press("Tab")
        self.assertEqual(self.value("document.activeElement.id"), "moves")
        self.browser.press("ArrowRight")
        self.assertEqual(self.text("#position"), "round 1 of 30")
        self.browser.click("#moves")
        self.assertEqual(self.value("document.activeElement.id"), "moves")
        self.browser.press("ArrowRight")
        self.assertEqual(self.text("#position"), "round 2 of 30")

    def test_plays_to_the_last_round(self):
        self.browser.go("#all_reduce/ring/2/0?language=en")
        self.value("document.getElementById('speed').value = '500'")
        self.value("""void (window.titlesOfPlay = new Promise((done) => {
            const button = document.getElementById('play'), titles = [];
            new MutationObserver(() => titles.push(button.title) === 2 && done(titles)).observe(button, { attributeFilter: ['title'] });
        }))""")
        self.browser.press(" ")
        self.assertEqual(self.value("window.titlesOfPlay"), ["Pause", "Play"])
        self.assertEqual(self.text("#position"), "round 2 of 2")

    def test_buttons_and_choices_work(self):
        self.browser.click("#next")
        self.browser.click("#next")
        self.assertEqual(self.text("#position"), "round 2 of 6")
        self.browser.click("#back")
        self.assertEqual(self.text("#position"), "round 1 of 6")
        for name, value in [("collective", "broadcast"), ("algorithm", "binomial"), ("ranks", "8"), ("root", "1"), ("topology", "torus")]:
            self.value(f"""(() => {{ const select = document.getElementById('{name}'); select.value = '{value}';
                select.dispatchEvent(new Event('change')); }})()""")
        self.assertEqual(self.value("location.hash"), "#broadcast/binomial/8/1?root=1&topology=torus&language=en")
        self.assertIn("broadcast/binomial, 8 ranks, root 1", self.text("#summary"))

    def test_addresses_that_mean_nothing_show_something(self):
        for address in ("#", "#nonsense/of/any/kind", "#all_reduce/ring/99/99", "#%E0%A4%A", "#a?language=constructor&bytes=-1&root=x"):
            self.browser.go(address)
            self.assertRegex(self.text("#summary"), r"all_reduce/\w+")

    def test_links_of_a_round_are_those_of_its_messages(self):
        self.browser.go("#broadcast/binomial/4/1?language=en&topology=flat&bytes=1K")
        used = [row[0] for row in self.rows("loads") if row[2] != "0"]
        self.assertEqual(sorted(used), ["rank 0 > switch", "switch > rank 1", "switch > rank 2"])

    def test_chinese_has_every_text(self):
        self.browser.click("#language")
        self.assertEqual(self.value("document.documentElement.lang"), "zh-CN")
        self.assertIn("4 个进程", self.text("#summary"))
        shape = """(text) => JSON.stringify(text, (_, v) => (typeof v === 'function' ? `f${v.length}` :
            typeof v === 'string' ? 's' : v))"""
        self.assertEqual(self.value(f"({shape})(STRINGS.en)"), self.value(f"({shape})(STRINGS.zh)"))

    def test_controls_and_pictures_have_names(self):
        nodes = self.browser.call("Accessibility.getFullAXTree")["nodes"]
        kinds = {"button", "combobox", "slider", "checkbox", "image", "region"}
        named = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if n.get("role", {}).get("value") in kinds]
        self.assertGreater(len(named), 15)
        self.assertEqual([role for role, name in named if not name], [])
        self.assertIn("status", [n.get("role", {}).get("value") for n in nodes])

    def test_text_has_contrast_in_both_themes(self):
        measure = """(() => {
            const style = getComputedStyle(document.documentElement);
            const channel = (c) => (c <= 10 ? c / 3294 : ((c / 255 + 0.055) / 1.055) ** 2.4);
            const light = (colour) => [1, 3, 5].map((i) => channel(parseInt(colour.slice(i, i + 2), 16)))
                .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
            const of = (name) => light(name[0] === '#' ? name : style.getPropertyValue(name).trim());
            const contrast = (a, b) => (Math.max(of(a), of(b)) + 0.05) / (Math.min(of(a), of(b)) + 0.05);
            const pairs = ['--page', '--panel', '--changed'].map((back) => ['--text', back])
                .concat(['--page', '--panel'].map((back) => ['--quiet', back]), COLOURS.map((c) => ['#15171b', c]));
            return Math.min(...pairs.map(([a, b]) => contrast(a, b)));
        })()"""
        for theme in ("light", "dark"):
            self.browser.prefer(prefers_color_scheme=theme)
            self.browser.open(self.file.as_uri())
            self.assertEqual(self.value("document.documentElement.dataset.theme"), theme)
            self.assertGreaterEqual(self.value(measure), 4.5, theme)

    def test_moves_only_for_those_who_want_motion(self):
        dots = "document.querySelectorAll('#moves circle.dot').length"
        self.browser.press("ArrowRight")
        self.assertEqual(self.value(dots), 0)
        self.browser.prefer(prefers_reduced_motion="no-preference")
        self.assertEqual(self.value(f"goTo(2), {dots}"), 4)

    def test_fits_a_narrow_window(self):
        for address in ("#all_reduce/ring/16/3", "#all_to_all/direct/8/1?topology=rails", "#all_reduce/ring/4/1?language=zh"):
            self.browser.go(address)
            self.browser.resize(360, 800)
            self.assertLessEqual(self.value("document.documentElement.scrollWidth"), 360)
            self.browser.resize(1400, 1000)

    def test_needs_nothing_but_itself(self):
        page = self.file.read_text()
        code = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.S)
        self.assertEqual(re.findall(r"\b(?:src|href)\s*=|url\(|@import|\bfetch\(|XMLHttpRequest|WebSocket", code), [])
        self.assertEqual(set(re.findall(r"\w+://[^'\"\s]*", code)), {"http://www.w3.org/2000/svg"})
        self.assertIn("default-src 'none'; style-src 'sha256-", code)
        self.assertEqual(set(self.browser.requests) - {"about:blank"}, {self.file.as_uri()})

    def test_whole_catalog_is_small(self):
        self.assertLessEqual(self.file.stat().st_size, MOST_BYTES)
        there = set(self.value("DATA.algorithms.map((a) => a.id)"))
        listed = re.findall(r"^  (\w+/\w+)$", Path(__file__).parents[2].joinpath("src/algorithm/catalog/CMakeLists.txt").read_text(), re.M)
        self.assertEqual(there - set(listed), {id for id in there if id.split("/")[0].endswith("_v") and id not in listed})
        self.assertLessEqual(set(listed), there)


if __name__ == "__main__":
    words = sys.argv[2:]
    if len(words) == 2 and words[0].isdigit():
        part, parts = map(int, words)
        names = unittest.defaultTestLoader.getTestCaseNames(Page)
        for name in set(names) - set(names[part - 1::parts]):
            delattr(Page, name)
        words = []
    unittest.main(argv=[sys.argv[0], *words], verbosity=2)
