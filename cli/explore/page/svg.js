
// Pictures are SVG, made here; attributes and not styles, which the page's policy forbids.

// Paul Tol's "light" scheme, as anyccl draw has it: dark text reads well on each.
const COLOURS = ['#77AADD', '#EE8866', '#EEDD88', '#44BB99', '#FFAABB', '#99DDFF', '#BBCC33', '#AAAA00'];
const colourOf = (rank) => COLOURS[rank % COLOURS.length];

/// An element of SVG below `parent`. A "title" is what a pointer that rests there is told.
function draw(parent, name, attributes = {}, words = null) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes))
    element.setAttribute(key, typeof value === 'number' ? Number(value.toFixed(1)) : value);
  if (words !== null) element.textContent = words;
  parent.append(element);
  return element;
}

function group(parent, title, className = '') {
  const g = draw(parent, 'g', className ? { class: className } : {});
  draw(g, 'title', {}, title);
  return g;
}

/// Puts an empty picture into the element `id` and returns it. Wider than its place it shrinks to `least` of its size,
/// then scrolls.
function picture(id, width, height, title, least = 0.75, most = 1.4) {
  const place = document.getElementById(id);
  const svg = draw(place, 'svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title });
  svg.style.width = '100%';
  svg.style.minWidth = `${Math.round(width * least)}px`;
  svg.style.maxWidth = `${Math.round(width * most)}px`;
  place.replaceChildren(svg);
  return svg;
}

/// Where there are many lines, they are thin.
const crowd = (svg, lines) => svg.classList.toggle('crowded', lines > 100);

/// The first of these points at which `words` overlap none that are there; `taken` is where they are.
function freePoint(points, words, taken) {
  const half = 2 + 3.3 * `${words}`.length;
  const isFree = ({ x, y }) => taken.every((other) => Math.abs(x - other.x) > half + other.half || Math.abs(y - other.y) > 13);
  const point = points.find(isFree) || points[0];
  taken.push({ ...point, half });
  return point;
}

const label = (parent, x, y, words, className = '') => draw(parent, 'text', { x, y, class: className }, words);

/// Lines of a legend: a small picture and words.
function legend(id, lines) {
  document.getElementById(id).replaceChildren(...lines.map(([drawSign, words]) => {
    const item = document.createElement('li');
    if (drawSign) drawSign(draw(item, 'svg', { width: 34, height: 22, 'aria-hidden': 'true' }));
    item.append(words);
    return item;
  }));
}
