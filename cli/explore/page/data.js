
// The data that the tool wrote (cli/explore): JSON, with long lists of numbers packed (packed.hpp).

const DATA = JSON.parse(document.getElementById('data').textContent);

const DIGITS = new Map([...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx' +
    'yz!#$%()*+,-./:;=>?@[]^_`{|}~ '].map((character, digit) => [character, digit]));

/// The numbers of a packed text.
function unpacked(text) {
  const numbers = [];
  let number = 0;
  for (const character of text) {
    const digit = DIGITS.get(character);
    if (digit < 60) {
      numbers.push(number * 60 + digit);
      number = 0;
    } else {
      number = number * 30 + digit - 60;
    }
  }
  return numbers;
}

/// Takes numbers of a packed text one after the other.
class Reader {
  constructor(text) {
    this.numbers = unpacked(text);
    this.at = 0;
  }
  next() { return this.numbers[this.at++]; }
  more() { return this.at < this.numbers.length; }
  times(count, read) { return Array.from({ length: count }, read); }
}

/// Sets of ranks, as ascending arrays: there may be more ranks than a number has bits.
const RANK_SETS = DATA.ranks.map((text) => {
  const ranks = [];
  for (let i = text.length - 1, first = 0; i >= 0; --i, first += 4)
    for (let bit = 0, digit = parseInt(text[i], 16); bit < 4; ++bit)
      if (digit & (1 << bit)) ranks.push(first + bit);
  return ranks;
});

/// Chunks are {number, ranks}.
function readChunks(from) {
  const chunks = [];
  for (let runs = from.next(); runs > 0; --runs) {
    const first = from.next(), count = from.next(), ranks = RANK_SETS[from.next()];
    for (let i = 0; i < count; ++i) chunks.push({ number: first + i, ranks });
  }
  return chunks;
}

function readAll(text, read) {
  const all = [];
  for (const from = new Reader(text); from.more();) all.push(read(from));
  return all;
}

/// The movement of one variant of an algorithm.
function readMovement(algorithm, variant) {
  const memory = (text) => readAll(text, readChunks);
  const [rounds, sent, of, roundings] = variant.cost;
  const messages = readAll(variant.messages, (from) => ({
    from: from.next(), to: from.next(), round: from.next(), action: from.next(), chunks: readChunks(from),
  }));
  const actions = readAll(variant.actions, (from) => ({
    rank: from.next(), round: from.next(), name: DATA.names[from.next()], sums: readChunks(from), messages: [],
  }));
  for (const message of messages) actions[message.action].messages.push(message);
  return {
    id: algorithm.id, rooted: algorithm.rooted, combines: algorithm.combines, ranks: variant.ranks, root: variant.root,
    ranksPerHost: variant.ranksPerHost, chunksPerBlock: variant.chunksPerBlock, rounds, sent, of, roundings,
    before: memory(variant.before), after: memory(variant.after), messages, actions, packedTimes: variant.times,
  };
}

/// When its messages travel and its ranks wait and add, in us, on one topology, so placed and with one size.
function readTimes(movement, topology, placement, size) {
  const which = (topology * DATA.placements.length + placement) * DATA.bytes.length + size;
  const chosen = unpacked(movement.packedTimes).slice(2 * which);
  let now = 0;
  const clock = unpacked(DATA.clocks[chosen[1]]).map((after) => (now += after) / 1000);
  const from = new Reader(DATA.patterns[chosen[0]]);
  const span = () => {
    const begin = from.next();
    return { begin: clock[begin], end: clock[begin + from.next()] };
  };
  const spansOfRanks = () => from.times(movement.ranks, () => from.times(from.next(), span));
  const messages = from.times(movement.messages.length, span);
  return { messages, waits: spansOfRanks(), additions: spansOfRanks(), total: clock.length ? clock[clock.length - 1] : 0 };
}

/// A network of `ranks` ranks: nodes, links, cables that are drawn, the end of each rank and the rank at each end, and
/// the links between each two ranks.
function readNetwork(topology, placement, ranks) {
  const network = DATA.networks[ranks][topology];
  const [ends, packedRoutes] = network.placements[placement];
  const rankAt = new Map(unpacked(ends).map((end, rank) => [end, rank]));
  const places = readAll(network.places, (from) => ({ x: from.next(), y: from.next() }));
  const links = readAll(network.links, (from) => ({ from: from.next(), to: from.next(), kind: network.classes[from.next()] }));
  const way = new Reader(packedRoutes);
  const routes = way.times(ranks, (_, a) => way.times(ranks, (__, b) => (a === b ? [] : way.times(way.next(), () => way.next()))));
  const levelOf = (node) => network.levels.findIndex(([, first, count]) => node < first + count);
  const nodeName = (node) => {
    const [level, first, count] = network.levels[levelOf(node)];
    if (node < network.ends) return rankAt.has(node) ? `${level} ${rankAt.get(node)}` : `end ${node}`;
    return count === 1 ? level : `${level} ${node - first}`;
  };
  return { ...network, placement: DATA.placements[placement], places, links, routes, rankAt, levelOf, nodeName };
}
