
// The choice: a state, which the address holds after its #, as all_reduce/ring/4/3?root=1&topology=torus.

const EXTRAS = ['root', 'hosts', 'bytes', 'topology', 'placement', 'links', 'communicator', 'operation', 'operations',
  'language', 'theme'];

const SHOWN = [1, 4, 16, 64, 256];  // operations

const collectiveOf = (algorithm) => algorithm.id.split('/')[0];

/// The value of `among` that is next to `wanted`.
function nearest(among, wanted) {
  return among.reduce((best, value) => (Math.abs(value - wanted) < Math.abs(best - wanted) ? value : best));
}

/// Which of the recorded operations are shown; null: none are there. Operations of people begin with 1.
function recordedFrom(wish) {
  if (DATA.recorded.length === 0) return null;
  const named = DATA.recorded.findIndex((one) => one.title === wish.communicator);
  const communicator = Math.max(0, named);
  return { communicator, first: Math.max(0, Math.floor(Number(wish.operation) || 1) - 1), count: nearest(SHOWN, Number(wish.operations) || SHOWN[1]) };
}

/// The choice of the page that is next to a wish.
function chosenFrom(wish) {
  const [collective, name, ranks, round] = wish.path;
  const of = DATA.algorithms.filter((one) => collectiveOf(one) === collective);
  const algorithm = of.find((one) => one.id === `${collective}/${name}`) || of[0] || DATA.algorithms[0];
  const numbers = [...new Set(algorithm.variants.map((v) => v.ranks))];
  const n = nearest(numbers, Number(ranks) || 4);
  let variants = algorithm.variants.filter((v) => v.ranks === n);
  const root = nearest(variants.map((v) => v.root), Number(wish.root) || 0);
  const roots = [...new Set(variants.map((v) => v.root))];
  variants = variants.filter((v) => v.root === root);
  const variant = variants.find((v) => v.ranksPerHost === (Number(wish.hosts) || 0)) || variants[0];
  const size = Math.max(0, DATA.bytes.findIndex((bytes) => sizeText(bytes) === wish.bytes || `${bytes}` === wish.bytes));
  const topology = Math.max(0, DATA.topologies.findIndex((text) => text === wish.topology || text.split(':')[0] === wish.topology));
  const placement = Math.max(0, DATA.placements.indexOf(wish.placement));
  return {
    algorithm, variant, size, topology, placement, numbers, roots, hosts: variants.map((v) => v.ranksPerHost),
    collective: collectiveOf(algorithm), round: Math.min(Math.max(0, Math.floor(Number(round)) || 0), variant.cost[0]),
    links: wish.links === 'all' ? 'all' : 'round', recorded: recordedFrom(wish),
    language: Object.hasOwn(STRINGS, wish.language) ? wish.language : navigator.language.startsWith('zh') ? 'zh' : 'en',
    theme: ['light', 'dark'].includes(wish.theme) ? wish.theme : 'auto',
  };
}

/// From the address, which anyone may have written.
function wishOf(address) {
  let words = '';
  try {
    words = decodeURIComponent(address.replace(/^#/, ''));
  } catch { /* it stands for no text: what is shown without any */ }
  const [path, query] = words.split('?');
  const extras = new Map((query || '').split('&').map((word) => word.split(/=(.*)/s).slice(0, 2)));
  return { path: path.split('/'), ...Object.fromEntries(EXTRAS.map((name) => [name, extras.get(name)])) };
}

/// The address names only what differs from the defaults.
function addressOf(wish, chosen) {
  const path = [chosen.algorithm.id, chosen.variant.ranks, chosen.round].join('/');
  const extras = EXTRAS.filter((name) => wish[name] !== undefined && wish[name] !== '').map((name) => `${name}=${wish[name]}`);
  return `#${path}${extras.length > 0 ? `?${extras.join('&')}` : ''}`;
}
