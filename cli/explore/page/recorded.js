
// What ranks recorded (ANYCCL_TRACE): a track for each rank, its calls, and arrows from those that others waited for.

/// Calls of a communicator by rank, and operations: the calls of several ranks that belong together. Times in us.
function readRecorded(one) {
  const operations = [];
  const ranks = one.calls.map((packed, i) => {
    let now = 0;
    return readAll(packed, (from) => {
      const operation = from.next(), [kind, bytes, algorithm, protocol, root] = one.names[from.next()];
      now += from.next();
      const call = { rank: one.ranks[i][0], row: i, operation, kind, bytes, algorithm, protocol, root, begin: now / 1000, end: (now + from.next()) / 1000 };
      (operations[operation] = operations[operation] || []).push(call);
      return call;
    });
  });
  for (const calls of operations) {
    const last = calls.reduce((a, b) => (b.begin > a.begin ? b : a));
    const isMessage = calls.some(({ kind }) => kind === 'send');
    for (const call of calls) {
      const other = isMessage ? calls.find(({ kind }) => kind === 'send') : last;
      if (other === call || calls.length < 2) continue;
      call.for = other;  // it came later, or sends what this one receives
      call.waits = Math.max(0, Math.min(other.begin, call.end) - call.begin);
    }
  }
  return { ...one, calls: ranks, operations };
}

/// The operations that are shown, and when.
function windowOf(recorded, first, count) {
  const calls = recorded.operations.slice(first, first + count).flat();
  return { calls, begin: Math.min(...calls.map((call) => call.begin)), end: Math.max(...calls.map((call) => call.end)) };
}

function drawCalls(svg, { calls, begin }, x, y, tall, text) {
  for (const call of calls) {
    const g = group(svg, text.recordedCall(call, usText(call.begin - begin), usText(call.end - begin)), 'call');
    const height = tall * (call.kind === 'send' || call.kind === 'recv' ? 0.3 : 0.6), came = call.begin + (call.waits || 0);
    const bar = (from, to, attributes) => draw(g, 'rect',
      { x: x(from), y: y(call.row) - height / 2, width: Math.max(0.8, x(to) - x(from)), height, ...attributes });
    bar(call.begin, call.end, { class: 'recorded', fill: colourOf(call.operation) });
    if (call.waits > 0) bar(call.begin, came, { class: 'late' });
  }
}

function drawComings(svg, { calls }, x, y, text) {
  for (const call of calls) {
    if (!call.for) continue;
    const from = call.for, at = Math.max(call.begin, Math.min(from.begin, call.end));
    const g = group(svg, text.recordedArrow(call), 'flights now');
    draw(g, 'line', { x1: x(from.begin), y1: y(from.row), x2: x(at), y2: y(call.row), class: 'flight' });
    draw(g, 'circle', { cx: x(at), cy: y(call.row), r: 2.5, class: 'head' });
  }
}

function drawRecorded(recorded, shown, text) {
  const rows = recorded.ranks.length, tall = rows > 8 ? 20 : 28, width = 1200, height = tall * rows + 30;
  const total = shown.end - shown.begin;
  const svg = picture('recorded', width, height, `${text.recorded}: ${text.recordedTime(usText(total))}`, 0.6, 1.3);
  const at = (us) => 84 + (total > 0 ? (us / total) * (width - 84 - 30) : 0), x = (us) => at(us - shown.begin);
  const y = (row) => 4 + tall * (row + 0.5);
  drawAxis(svg, total, at, height);
  recorded.ranks.forEach(([rank, host, pid], row) => {
    label(group(svg, text.recordedRank(rank, host, pid)), 4, y(row) + 4, text.rank(rank), '');
    draw(svg, 'line', { x1: at(0), x2: at(total), y1: y(row), y2: y(row), class: 'track' });
  });
  drawCalls(svg, shown, x, y, tall, text);
  drawComings(svg, shown, x, y, text);
  crowd(svg, shown.calls.length);
}

/// Whether all recorded ranks are on hosts as where so many are on each; 0: on one host.
function areOnHosts({ ranks }, each) {
  const number = (rank) => (each === 0 ? 0 : Math.floor(rank / each));
  return ranks.every(([a, host]) => ranks.every(([b, other]) => (host === other) === (number(a) === number(b))));
}

/// The variant of an algorithm that a recorded call was; undefined: the page has none. One that is alone is that of all hosts.
function variantOf(recorded, call) {
  const { rooted, variants } = DATA.algorithms.find(({ id }) => id === call.algorithm) || { variants: [] };
  const those = variants.filter((v) => v.ranks === recorded.size && (!rooted || v.root === call.root));
  return those.length > 1 ? those.find((v) => areOnHosts(recorded, v.ranksPerHost)) : those[0];
}

/// The first operation that is shown, in words, and beside it what the model says: `times`, if the page shows the same.
function recordedWords(calls, times, text) {
  const [call] = calls, last = calls.find((one) => calls.every((other) => !other.for || other.for === one)) || call;
  const begin = Math.min(...calls.map((one) => one.begin)), end = Math.max(...calls.map((one) => one.end));
  const words = [text.recordedOperation(call, usText(end - begin))];
  if (calls.some((one) => one.waits > 0)) words.push(text.recordedLate(last.rank, usText(Math.max(0, end - last.begin))));
  if (times) words.push(text.recordedModel(usText(times.total)));
  return words.join(text.joint);
}

function recordedTable(shown, text) {
  const c = text.columns;
  const rows = shown.calls.slice().sort((a, b) => a.operation - b.operation || a.rank - b.rank).map((call) => [
    call.operation + 1, call.rank, text.recordedName(call), Number(usText(call.begin - shown.begin)), Number(usText(call.end - shown.begin)),
    call.for && call.waits > 0 ? Number(usText(call.waits)) : 0, call.for && call.waits > 0 ? `${call.for.rank}` : '']);
  fillTable('recorded-calls', [c.operation, c.rank, c.call, c.begins, c.ends, c.late, c.lateRank], rows);
}

function recordedLegend(shown, text) {
  const bar = (attributes) => (svg) => draw(svg, 'rect', { x: 2, y: 5, width: 30, height: 12, ...attributes });
  const arrow = (svg) => {
    draw(draw(svg, 'g', { class: 'now' }), 'line', { x1: 2, y1: 4, x2: 30, y2: 18, class: 'flight' });
    draw(svg, 'circle', { cx: 30, cy: 18, r: 2.5, class: 'head' });
  };
  const isMessage = ({ kind }) => kind === 'send' || kind === 'recv';
  const lines = [[bar({ class: 'recorded', fill: COLOURS[0] }), text.legendCall]];
  if (shown.calls.some((call) => call.waits > 0)) lines.push([bar({ class: 'late' }), text.legendLate]);
  if (shown.calls.some((call) => call.for && !isMessage(call))) lines.push([arrow, text.legendCame]);
  if (shown.calls.some((call) => call.for && isMessage(call))) lines.push([arrow, text.legendMessage]);
  legend('recorded-legend', lines);
}
