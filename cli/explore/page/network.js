
// The picture of the network: cables as wide and red as what they carry.

const LEVELS = 5;

/// 0 for a cable that carries nothing or little, up to LEVELS - 1.
const levelOf = (load, most) => (load > 0 ? Math.min(LEVELS - 1, Math.floor((load / most) * LEVELS)) : 0);

function drawCables(svg, network, loads, most, text) {
  const labels = [];
  const shown = (node) => network.nodeName(network.routersAreEnds ? node % network.ends : node);
  for (const [link, back, path] of network.cables) {
    const there = loads[link], again = loads[back], load = Math.max(there, again);
    const { from, to } = network.links[link];
    const g = group(svg, text.cable(shown(from), shown(to), bytesText(there), bytesText(again)), 'cable');
    const line = draw(g, 'path', { d: path, class: `cable load${levelOf(load, most)}` });
    if (load > 0) labels.push({ line, load });
  }
  return labels;
}

/// Numbers on cables, in one unit.
function drawLoads(svg, labels, unit) {
  if (labels.length > 48) return;
  const taken = [];
  for (const { line, load } of labels) {
    const words = Number((load / unit).toPrecision(3));
    const points = [0.5, 0.38, 0.62, 0.28, 0.72].map((at) => line.getPointAtLength(line.getTotalLength() * at));
    const { x, y } = freePoint(points.map((point) => ({ x: point.x, y: point.y + 4 })), words, taken);
    label(svg, x, y, words, 'middle halo small');
  }
}

function drawNodes(svg, network) {
  network.places.forEach(({ x, y }, node) => {
    if (network.routersAreEnds && node >= network.ends) return;
    const level = network.levelOf(node), rank = network.rankAt.get(node), isUsed = rank !== undefined;
    const number = isUsed ? rank : node - network.levels[level][1];
    const g = group(svg, network.nodeName(node), level === 0 && !isUsed ? 'unused' : '');
    if (level > 0) draw(g, 'rect', { x: x - 11, y: y - 9, width: 22, height: 18, rx: 3, class: 'switch' });
    else draw(g, 'circle', { cx: x, cy: y, r: 11, fill: isUsed ? colourOf(rank) : 'none', class: 'node' });
    if (isUsed || (level > 0 && network.levels[level][2] > 1)) label(g, x, y + 4, number, `middle${isUsed ? ' dark' : ''}`);
  });
}

/// Beside each level its name, where levels are rows.
function drawLevels(svg, network) {
  if (network.routersAreEnds) return;
  for (const [name, first] of network.levels) label(svg, -6, network.places[first].y + 4, name, 'quiet end');
}

function drawNetwork(movement, network, loads, text) {
  const drawn = network.cables.flatMap(([link, back]) => [loads[link], loads[back]]);
  const most = Math.max(0, ...drawn), above = 30;  // for cables that are bent
  const names = network.levels.map(([name]) => name.length), left = network.routersAreEnds ? 0 : 12 + 6 * Math.max(...names);
  const svg = picture('network', left + network.width, network.height + above, text.network(network), 0.7, 1.3);
  svg.setAttribute('viewBox', `${-left} ${-above} ${left + network.width} ${network.height + above}`);
  const labels = drawCables(svg, network, loads, most, text);
  drawNodes(svg, network);
  const [unit, name] = [[1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']].find(([size]) => most >= size) || [1, 'B'];
  drawLevels(svg, network);
  drawLoads(svg, labels, unit);
  document.getElementById('network-name').textContent = text.network(network);
  if (most === 0) return legend('network-legend', [[null, text.nothingCarried]]);
  const lines = Array.from({ length: LEVELS }, (_, level) => [
    (sign) => draw(sign, 'line', { x1: 2, y1: 11, x2: 32, y2: 11, class: `cable load${level}` }),
    text.legendLoad(bytesText((most * (level + 1)) / LEVELS))]);
  legend('network-legend', [...lines, [null, text.legendNumbers(name)]]);
}
