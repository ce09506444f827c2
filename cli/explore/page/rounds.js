
// The picture of a round: ranks are columns; above what each has before it, below after it, and messages between.

const HEAD = 22, LEFT = 66, NUMBER = 13;

/// Which chunk of each rank is drawn where. If there are few chunks, a chunk has the same row at all ranks; else a
/// rank's input comes first, then its result, then what it passes on. `room`: pixels for all ranks, if that is enough.
function placesOf(movement, room) {
  const held = holdings(movement, movement.rounds);
  const numbers = held.map((chunks, rank) => [...new Set(
    [...movement.before[rank], ...movement.after[rank], ...chunks].map((chunk) => chunk.number))]);
  const origins = 1 + Math.max(0, ...numbers.flat());
  if (origins <= 32) for (const of of numbers) of.splice(0, of.length, ...Array(origins).keys());
  const most = Math.max(1, ...numbers.map((of) => of.length));
  const rows = Math.min(most, most <= 40 ? 8 : 16), lanes = Math.ceil(most / rows);
  const stripes = movement.combines !== 'none';
  const least = lanes > 6 ? 15 : Math.max(22, 8 + 7 * `${origins - 1}`.length);
  const column = Math.max(lanes * least + 14, 76, Math.min(170, room / movement.ranks));
  const width = Math.min(64, (column - 14) / lanes), height = stripes ? 27 : 20;
  const place = numbers.map((of) => new Map(of.map((number, i) => [
    number, { x: (Math.floor(i / rows) - lanes / 2) * width, y: (i % rows) * (height + 3) }])));
  return { place, column, width, height, block: rows * (height + 3) };
}

/// A chunk, or several of one number: its number and, below, a stripe for each rank in it.
function drawChunk(parent, movement, at, chunks, text) {
  const { x, y, width, height } = at;
  const stripes = movement.combines !== 'none';
  const title = chunks.map((c) => text.chunk(c) + (c.isResult ? `; ${text.isResult}` : '') + (c.isNew ? `; ${text.isNew}` : ''));
  const g = group(parent, title.join('\n'), 'chunk');
  draw(g, 'rect', { x, y, width, height, class: 'cell' });
  const top = stripes ? NUMBER : 0, band = (height - top) / chunks.length;
  chunks.forEach((chunk, i) => {
    const at = { y: y + top + i * band, height: band };
    if (!stripes) return draw(g, 'rect', { x, width, ...at, fill: colourOf(chunk.ranks[0]) });
    const part = width / movement.ranks;
    draw(g, 'rect', { x, width, ...at, class: 'missing' });
    for (const rank of chunk.ranks) draw(g, 'rect', { x: x + rank * part, width: part, ...at, fill: colourOf(rank) });
  });
  if (chunks.some((c) => c.isResult)) draw(g, 'rect', { x, y, width, height, class: 'result' });
  if (chunks.some((c) => c.isNew)) draw(g, 'rect', { x: x - 1, y: y - 1, width: width + 2, height: height + 2, class: 'changed' });
  const size = width < 18 ? ' tiny' : '';
  label(g, x + width / 2, y + (stripes ? 11 : height / 2 + 4), chunks[0].number, `middle${stripes ? '' : ' dark'}${size}`);
}

function drawMemory(svg, movement, places, columns, top, held, text) {
  held.forEach((chunks, rank) => {
    const byNumber = new Map();
    for (const chunk of chunks) byNumber.set(chunk.number, [...(byNumber.get(chunk.number) || []), chunk]);
    for (const [number, at] of places.place[rank]) {
      const box = { x: columns[rank] + at.x + 1, y: top + at.y, width: places.width - 2, height: places.height };
      if (byNumber.has(number)) drawChunk(svg, movement, box, byNumber.get(number), text);
      else draw(svg, 'rect', { ...box, class: 'slot' });
    }
  });
}

function drawHeads(svg, movement, places, columns, text) {
  columns.forEach((x, rank) => {
    const width = places.column - 8;
    draw(svg, 'rect', { x: x - width / 2, y: 4, width, height: HEAD, rx: 4, fill: colourOf(rank) });
    const isRoot = movement.rooted && rank === movement.root && width > 84;
    label(svg, x, 4 + 15, isRoot ? text.rootRank(rank) : text.rank(rank), 'middle strong dark');
    if (movement.ranksPerHost)
      label(svg, x, HEAD + 18, text.host(Math.floor(rank / movement.ranksPerHost)), 'middle quiet');
  });
}

/// For each message of a round the ends of its arrow: those that leave a rank or come to it are side by side.
function arrowsOf(movement, messages, columns, places, top, bottom) {
  const spread = (own, other) => {
    const x = new Map();
    columns.forEach((column, rank) => {
      const mine = messages.filter((m) => m[own] === rank).sort((a, b) => a[other] - b[other]);
      const step = Math.min(16, (places.column - 16) / mine.length);
      mine.forEach((m, i) => x.set(m, column + (i - (mine.length - 1) / 2) * step));
    });
    return x;
  };
  const leave = spread('from', 'to'), come = spread('to', 'from');
  return messages.map((message) => ({ message, x1: leave.get(message), y1: top, x2: come.get(message), y2: bottom }));
}

/// `taken`: the places of the labels before, or null if there are too many for labels.
function drawArrow(svg, movement, arrow, round, taken, text) {
  const { message, x1, y1, x2, y2 } = arrow;
  const words = told(text, movement, message);
  const g = group(svg, text.message(words), 'message');
  const read = movement.actions[message.action].round;
  const style = message.round < round ? ' earlier' : read > round ? ' later' : '';
  draw(g, 'line', { x1, y1, x2, y2, class: `arrow${style}` });
  const length = Math.hypot(x2 - x1, y2 - y1), ux = (x2 - x1) / length, uy = (y2 - y1) / length;
  const point = (back, aside) => `${(x2 - ux * back - uy * aside).toFixed(1)},${(y2 - uy * back + ux * aside).toFixed(1)}`;
  draw(g, 'polygon', { points: [point(0, 0), point(9, 4), point(9, -4)].join(' '), class: 'head' });
  const numbers = numbersOf(message.chunks);
  if (taken === null || numbers.length > 6) return;
  const points = [0.16, 0.27, 0.38, 0.5, 0.62].map((at) => ({ x: x1 + (x2 - x1) * at, y: y1 + (y2 - y1) * at + 4 }));
  const { x, y } = freePoint(points, numbers, taken);
  label(g, x, y, numbers, 'middle halo');
}

/// Where a rank takes its messages: a plus if it adds them, else a dot.
function drawActions(svg, movement, round, arrows, columns, bottom, text) {
  const actions = movement.actions.filter((action) => action.round === round && round > 0);
  for (const action of actions) {
    const ends = arrows.filter((a) => movement.actions[a.message.action] === action).map((a) => a.x2);
    if (ends.length === 0) ends.push(columns[action.rank]);
    const sums = action.sums.length > 0, reach = sums ? 9 : 4;
    const x = Math.min(...ends) - reach, width = Math.max(...ends) + reach - x;
    const what = wordsFor(text, sums ? action.sums : action.messages.flatMap((m) => m.chunks));
    const g = group(svg, `${text.makes(action.rank, what)}: ${action.name}`, sums ? 'reduce' : 'recv');
    draw(g, 'rect', { x, y: bottom + 9 - reach, width, height: 2 * reach, rx: reach, class: sums ? 'mark' : 'head' });
    if (sums) label(g, x + width / 2, bottom + 13, '+', 'middle strong');
  }
}

/// Chunks on their way, for those who want to see motion.
function moveDots(svg, arrows, round) {
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  for (const { message, x1, y1, x2, y2 } of arrows) {
    if (message.round !== round) continue;
    const dot = draw(svg, 'circle', { r: 5, cx: 0, cy: 0, fill: colourOf(message.from), class: 'dot' });
    const at = (x, y) => `translate(${x}px, ${y}px)`;
    const moving = dot.animate([{ transform: at(x1, y1) }, { transform: at(x2, y2) }], { duration: 450, easing: 'ease-in-out' });
    moving.onfinish = () => dot.remove();
  }
}

function drawRounds(movement, round, moves, text) {
  const places = placesOf(movement, document.getElementById('moves').clientWidth - LEFT - 8);
  const columns = movement.before.map((_, rank) => LEFT + places.column * (rank + 0.5));
  const width = LEFT + places.column * movement.ranks + 8;
  const top = HEAD + (movement.ranksPerHost ? 28 : 14), after = holdings(movement, round);
  const messages = round === 0 ? [] : messagesOf(movement, round);
  const gap = round === 0 ? 0 : Math.min(170, 84 + 5 * movement.ranks);
  const lower = top + places.block + gap, height = (round === 0 ? top : lower) + places.block + 8;
  const state = round === 0 ? text.input : text.roundName(round);
  const svg = picture('moves', width, height, text.picture(text.summary(movement), state));
  for (const x of columns) draw(svg, 'line', { x1: x, x2: x, y1: HEAD, y2: height, class: 'column' });
  drawHeads(svg, movement, places, columns, text);
  label(svg, 4, top + 14, round === 0 ? text.input : text.before, 'strong');
  if (round === 0) return drawMemory(svg, movement, places, columns, top, after, text);
  const before = holdings(movement, round - 1);
  after.forEach((chunks, rank) => chunks.forEach((chunk) => {
    chunk.isNew = !before[rank].some((c) => c.number === chunk.number && isSame(c.ranks, chunk.ranks));
  }));
  drawMemory(svg, movement, places, columns, top, before, text);
  label(svg, 4, top + places.block + gap / 2, text.roundName(round), 'strong');
  label(svg, 4, lower + 14, text.after, 'strong');
  drawMemory(svg, movement, places, columns, lower, after, text);
  const arrows = arrowsOf(movement, messages, columns, places, top + places.block + 2, lower - 26);
  const taken = arrows.length > 26 ? null : [];
  for (const arrow of arrows) drawArrow(svg, movement, arrow, round, taken, text);
  drawActions(svg, movement, round, arrows, columns, lower - 26, text);
  crowd(svg, arrows.length);
  if (moves) moveDots(svg, arrows, round);
}

function roundsLegend(movement, text) {
  const box = { x: 3, y: 0, width: 26, height: movement.combines === 'none' ? 20 : 22 };
  const example = { number: 0, ranks: movement.combines === 'none' ? [0] : [...Array(Math.ceil(movement.ranks / 2)).keys()] };
  const chunk = (more) => (svg) => drawChunk(svg, movement, box, [{ ...example, ...more }], text);
  const pill = (sums) => (svg) => {
    const reach = sums ? 9 : 4;
    draw(svg, 'rect', { x: 17 - reach, y: 11 - reach, width: 2 * reach, height: 2 * reach, rx: reach, class: sums ? 'mark' : 'head' });
    if (sums) label(svg, 17, 15, '+', 'middle strong');
  };
  const lines = [
    [chunk({}), text.legendChunk[movement.combines]],
    [chunk({ isResult: true }), text.legendResult], [chunk({ isNew: true }), text.legendNew],
    [(svg) => draw(svg, 'line', { x1: 2, y1: 11, x2: 32, y2: 11, class: 'arrow' }), text.legendArrow],
  ];
  if (movement.actions.some((a) => a.sums.length > 0)) lines.push([pill(true), text.legendSum]);
  if (movement.actions.some((a) => a.sums.length === 0)) lines.push([pill(false), text.legendKept]);
  legend('moves-legend', lines);
}
