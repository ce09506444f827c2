
// The controls, and what happens when they are used.

const byId = (id) => document.getElementById(id);
const darkSystem = matchMedia('(prefers-color-scheme: dark)');

let wish = wishOf(location.hash);
let chosen = chosenFrom(wish);
let movement, times, network, recorded = null, playing = null;

const text = () => STRINGS[chosen.language];
const bytes = () => DATA.bytes[chosen.size];

function fillSelect(id, options, value) {
  const select = byId(id);
  select.replaceChildren(...options.map(([of, words]) => new Option(words, of, false, `${of}` === `${value}`)));
  select.disabled = options.length < 2;
}

function fillControls() {
  const t = text(), ids = DATA.algorithms.map((a) => a.id);
  const { variant, algorithm } = chosen;
  fillSelect('collective', [...new Set(DATA.algorithms.map(collectiveOf))].map((c) => [c, c]), chosen.collective);
  fillSelect('algorithm', ids.filter((id) => id.startsWith(`${chosen.collective}/`)).map((id) => [id.split('/')[1], id.split('/')[1]]),
    algorithm.id.split('/')[1]);
  fillSelect('ranks', chosen.numbers.map((n) => [n, n]), variant.ranks);
  fillSelect('root', chosen.roots.map((r) => [r, algorithm.rooted ? r : t.noRoot]), variant.root);
  fillSelect('hosts', chosen.hosts.map((h) => [h, h === 0 ? t.oneHost : t.someHosts(h)]), variant.ranksPerHost);
  fillSelect('bytes', DATA.bytes.map((size) => [sizeText(size), bytesLabel(size)]), sizeText(bytes()));
  fillSelect('topology', DATA.topologies.map((name, i) => [name, DATA.networks[variant.ranks][i].text]), DATA.topologies[chosen.topology]);
  fillSelect('placement', DATA.placements.map((name) => [name, name]), DATA.placements[chosen.placement]);
  byId('placement').parentElement.hidden = DATA.placements.length < 2;
  fillSelect('span', [['round', t.thisRound], ['all', t.allRounds]], chosen.links);
  fillSelect('speed', Object.entries(t.speeds).sort((a, b) => b[0] - a[0]), byId('speed').value || 1200);
}

/// "1 KiB", of "1K".
const bytesLabel = (size) => sizeText(size).replace(/(\d)$/, '$1 B').replace(/([KMG])$/, ' $1iB');

function writeWords() {
  const t = text();
  document.documentElement.lang = chosen.language === 'zh' ? 'zh-CN' : 'en';
  for (const element of document.querySelectorAll('[data-text]')) element.textContent = t[element.dataset.text];
  byId('choices').setAttribute('aria-label', t.choices);
  byId('player').setAttribute('aria-label', t.player);
  byId('round').setAttribute('aria-label', t.player);
  byId('language').textContent = t.other;
  byId('language').lang = chosen.language === 'zh' ? 'en' : 'zh-CN';
  byId('theme').textContent = t.themes[chosen.theme];
  for (const id of ['first', 'back', 'next', 'last']) nameButton(id, id, t[id]);
}

const SIGNS = {
  first: 'M2 1h2v12h-2zM16 1v12L5 7z', back: 'M13 1v12L4 7z', next: 'M5 1v12l9-6z', last: 'M14 1h2v12h-2zM2 1v12l11-6z',
  play: 'M2 1v12l6-6zM9 1v12l7-6z', pause: 'M4 1h4v12h-4zM10 1h4v12h-4z',
};

function nameButton(id, sign, words) {
  const svg = draw(byId(id), 'svg', { width: 18, height: 14, 'aria-hidden': 'true' });
  draw(svg, 'path', { d: SIGNS[sign], class: 'sign' });
  byId(id).replaceChildren(svg);
  byId(id).setAttribute('aria-label', words);
  byId(id).title = words;
}

function showTheme() {
  const dark = chosen.theme === 'dark' || (chosen.theme === 'auto' && darkSystem.matches);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
}

/// The parts of the page that depend on the round; `moves`: a step forward, which may be animated.
function showRound(moves) {
  const t = text(), { round } = chosen, { rounds } = movement;
  byId('round').max = rounds;
  byId('round').value = round;
  byId('round').setAttribute('aria-valuetext', t.position(round, rounds));
  byId('position').textContent = t.position(round, rounds);
  byId('live').textContent = liveText(movement, round, t);
  for (const id of ['first', 'back']) byId(id).disabled = round === 0;
  for (const id of ['next', 'last']) byId(id).disabled = round === rounds;
  nameButton('play', playing === null ? 'play' : 'pause', playing === null ? t.play : t.pause);
  drawRounds(movement, round, moves, t);
  drawNetwork(movement, network, linkLoads(movement, network, bytes(), chosen.links === 'all' || round === 0 ? null : round), t);
  drawTimes(movement, times, round, t);
  messagesTable(movement, times, bytes(), round, byId('whole').checked, t);
  loadsTable(movement, network, times, bytes(), round, t);
  memoryTable(movement, round, t);
}

/// What was recorded; the page has it only if the tool was given traces.
function showRecorded() {
  byId('recorded-section').hidden = chosen.recorded === null;
  if (chosen.recorded === null) return;
  const t = text(), { communicator, count } = chosen.recorded;
  recorded = recorded && recorded.communicator === communicator ? recorded : { communicator, ...readRecorded(DATA.recorded[communicator]) };
  const many = recorded.operations.length, first = Math.min(chosen.recorded.first, Math.max(0, many - 1));
  fillSelect('communicator', DATA.recorded.map((one) => [one.title, one.title]), recorded.title);
  fillSelect('operations', SHOWN.map((number) => [number, number]), count);
  byId('operation').value = first + 1;
  byId('operation').max = many;
  byId('recorded-communicator').textContent = t.recordedWhat(recorded);
  if (many === 0) return;
  const shown = windowOf(recorded, first, count), [call] = recorded.operations[first];
  const variant = variantOf(recorded, call), isShown = chosen.variant === variant && bytes() === call.bytes;
  byId('recorded-words').textContent = recordedWords(recorded.operations[first], isShown ? times : null, t);
  byId('recorded-rounds').hidden = !variant;
  byId('recorded-rounds').onclick = () => showRoundsOf(variant, call);
  drawRecorded(recorded, shown, t);
  recordedLegend(shown, t);
  recordedTable(shown, t);
}

/// The rounds of a recorded call, with its size.
function showRoundsOf({ ranks, root, ranksPerHost }, call) {
  const [collective, algorithm] = call.algorithm.split('/'), unless0 = (number) => (number === 0 ? '' : `${number}`);
  stop();
  choose({ root: unless0(root), hosts: unless0(ranksPerHost), bytes: sizeText(call.bytes) }, { collective, algorithm, ranks, round: 1 });
}

function showAll() {
  const t = text();
  movement = readMovement(chosen.algorithm, chosen.variant);
  times = readTimes(movement, chosen.topology, chosen.placement, chosen.size);
  network = readNetwork(chosen.topology, chosen.placement, movement.ranks);
  showTheme();
  writeWords();
  fillControls();
  byId('summary').textContent = t.summary(movement);
  byId('chunk').textContent = movement.chunksPerBlock ? t.chunkSize(bytesText(chunkBytes(movement, bytes()))) : '';
  byId('views').classList.toggle('many', movement.ranks > 8 || network.width > 600);
  document.title = `${movement.id} - anyccl explorer`;
  roundsLegend(movement, t);
  timesLegend(movement, times, t);
  showRecorded();
  showRound(false);
}

/// Follows the controls: the address is rewritten, and only what has changed is drawn anew.
function choose(extras, path = {}) {
  const before = chosen;
  const now = { collective: chosen.collective, algorithm: chosen.algorithm.id.split('/')[1], ranks: chosen.variant.ranks, round: chosen.round };
  const to = { ...now, ...path };
  wish = { ...wish, ...extras, path: [to.collective, to.algorithm, to.ranks, to.round] };
  chosen = chosenFrom(wish);
  location.replace(addressOf(wish, chosen));
  if (Object.keys(extras).length > 0 || before.variant !== chosen.variant) showAll();
  else showRound(chosen.round === before.round + 1);
}

const goTo = (round) => choose({}, { round: Math.min(Math.max(0, round), movement.rounds) });

function stop() {
  if (playing === null) return;
  clearInterval(playing);
  playing = null;
  nameButton('play', 'play', text().play);
}

function play() {
  if (playing !== null) return stop();
  playing = setInterval(() => {
    if (chosen.round < movement.rounds) goTo(chosen.round + 1);
    if (chosen.round === movement.rounds) stop();
  }, Number(byId('speed').value));
  goTo(chosen.round === movement.rounds ? 0 : chosen.round + 1);
}

/// Whether what has the focus got it by a click: a click on a picture is no wish to scroll it with keys.
let pointed = false;

/// Whether a key belongs to what has the focus: a control, or a picture or table that is wider than its place.
function isOwnKey(event) {
  const { tagName, scrollWidth, clientWidth } = event.target;
  return event.altKey || event.ctrlKey || event.metaKey || ['SELECT', 'INPUT'].includes(tagName) ||
      (tagName === 'BUTTON' && event.key === ' ') ||
      (event.target.tabIndex === 0 && tagName === 'DIV' && !pointed && scrollWidth > clientWidth);
}

const KEYS = {
  ArrowLeft: () => goTo(chosen.round - 1), ArrowRight: () => goTo(chosen.round + 1),
  Home: () => goTo(0), End: () => goTo(movement.rounds), ' ': play,
};

function listen() {
  for (const name of ['collective', 'algorithm', 'ranks'])
    byId(name).addEventListener('change', (event) => { stop(); choose({}, { [name]: event.target.value }); });
  for (const [id, name] of [['root', 'root'], ['hosts', 'hosts'], ['bytes', 'bytes'], ['topology', 'topology'], ['placement', 'placement'], ['span', 'links'],
    ['communicator', 'communicator'], ['operation', 'operation'], ['operations', 'operations']])
    byId(id).addEventListener('change', (event) => choose({ [name]: event.target.value }));
  byId('language').addEventListener('click', () => choose({ language: chosen.language === 'zh' ? 'en' : 'zh' }));
  byId('theme').addEventListener('click', () => choose({ theme: { auto: 'light', light: 'dark', dark: 'auto' }[chosen.theme] }));
  byId('first').addEventListener('click', () => goTo(0));
  byId('back').addEventListener('click', () => goTo(chosen.round - 1));
  byId('next').addEventListener('click', () => goTo(chosen.round + 1));
  byId('last').addEventListener('click', () => goTo(movement.rounds));
  byId('play').addEventListener('click', play);
  byId('speed').addEventListener('change', () => { if (playing !== null) { stop(); play(); } });
  byId('round').addEventListener('input', (event) => { stop(); goTo(Number(event.target.value)); });
  byId('whole').addEventListener('change', () => showRound(false));
  darkSystem.addEventListener('change', showTheme);
  document.addEventListener('pointerdown', () => { pointed = true; });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Tab') pointed = false;
    const act = KEYS[event.key];
    if (!act || isOwnKey(event)) return;
    event.preventDefault();
    act();
  });
  addEventListener('hashchange', () => {
    if (location.hash === addressOf(wish, chosen)) return;  // our own doing
    stop();
    wish = wishOf(location.hash);
    chosen = chosenFrom(wish);
    showAll();
  });
}

listen();
showAll();
