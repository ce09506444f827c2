
// The same as the pictures, in words and numbers.

/// Heads and rows of cells; a number is written to the right. `marked`: rows that belong to the round.
function fillTable(id, heads, rows, marked = () => false) {
  const table = document.getElementById(id);
  const row = (cells, name, className) => {
    const line = document.createElement('tr');
    if (className) line.className = className;
    for (const cell of cells) {
      const place = document.createElement(name);
      if (name === 'th') place.scope = 'col';
      if (typeof cell === 'number') place.className = 'number';
      place.textContent = cell;
      line.append(place);
    }
    return line;
  };
  const head = document.createElement('thead'), body = document.createElement('tbody');
  head.append(row(heads, 'th'));
  rows.slice(0, 1).forEach((cells) => cells.forEach((cell, i) => head.rows[0].cells[i].classList.toggle('number', typeof cell === 'number')));
  body.append(...rows.map((cells) => row(cells, 'td', marked(cells) ? 'now' : '')));
  table.replaceChildren(head, body);
}

/// The messages of one round, or of all if `round` is null, and the sums that need none, in the order of anyccl draw.
function messageRows(movement, times, bytes, round, text) {
  const rows = movement.messages.map((message, i) => {
    const { step } = told(text, movement, message), time = times.messages[i];
    return [message.round, message.from, message.to, numbersOf(message.chunks), ranksIn(message.chunks), step,
      Math.round(message.chunks.length * chunkBytes(movement, bytes)), Number(usText(time.begin)), Number(usText(time.end))];
  });
  for (const action of movement.actions)
    if (action.messages.length === 0)
      rows.push([action.round, '-', action.rank, numbersOf(action.sums), ranksIn(action.sums), action.name, '', '', '']);
  rows.sort((a, b) => a[0] - b[0]);  // stable
  return rows.filter(([of]) => round === null || of === round);
}

function messagesTable(movement, times, bytes, round, whole, text) {
  const c = text.columns;
  fillTable('messages', [c.round, c.from, c.to, c.chunks, c.ofRanks, c.step, c.bytes, c.leaves, c.arrives],
    messageRows(movement, times, bytes, whole ? null : round, text), ([of]) => whole && of === round);
}

/// All links that carry something, the busiest first.
function loadsTable(movement, network, times, bytes, round, text) {
  const c = text.columns;
  const now = linkLoads(movement, network, bytes, round), all = linkLoads(movement, network, bytes, null);
  const order = [...all.keys()].filter((link) => all[link] > 0).sort((a, b) => all[b] - all[a] || a - b);
  fillTable('loads', [c.link, c.kind, c.thisRound, c.allRounds, c.busy], order.map((link) => {
    const { from, to, kind: [kind, own] } = network.links[link];
    const busy = times.total > 0 ? (100 * all[link]) / ((own || DATA.machine.GBps) * 1e3 * times.total) : 0;
    return [`${network.nodeName(from)} > ${network.nodeName(to)}`, kind, Math.round(now[link]), Math.round(all[link]), `${busy.toFixed(0)} %`];
  }));
}

function memoryTable(movement, round, text) {
  const c = text.columns, before = holdings(movement, Math.max(0, round - 1)), after = holdings(movement, round);
  fillTable('memory', [c.rank, c.before, c.after, c.result], after.map((chunks, rank) => [
    rank, memoryText(text, before[rank]), memoryText(text, chunks), memoryText(text, movement.after[rank])]));
}

/// The round in words, for listeners.
function liveText(movement, round, text) {
  if (round === 0) return text.live.before(movement.rounds);
  const sent = movement.messages.filter((message) => message.round === round);
  const shown = sent.slice(0, 6).map((message) => text.live.send(told(text, movement, message)));
  if (sent.length > shown.length) shown.push(text.live.more(sent.length - shown.length));
  return text.live.round(round, movement.rounds, shown.join(text.joint) || text.live.none);
}
