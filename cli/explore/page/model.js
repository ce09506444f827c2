
// The consequences of a movement: what ranks have after a round, what links carry, and how to say it.

const isSubset = (small, large) => small.every((rank) => large.includes(rank));
const isSame = (a, b) => a.length === b.length && isSubset(a, b);

/// "0..3 6", as anyccl draw says it.
function numbersOf(chunks) {
  const runs = [];
  for (let i = 0, last = 0; i < chunks.length; i = last + 1) {
    last = i;
    while (last + 1 < chunks.length && chunks[last + 1].number === chunks[last].number + 1) ++last;
    runs.push(i === last ? `${chunks[i].number}` : `${chunks[i].number}..${chunks[last].number}`);
  }
  return runs.join(' ');
}

/// "0+1" if all chunks have these contributions, else those of each: "0 1".
function ranksIn(chunks) {
  const each = chunks.map((chunk) => chunk.ranks.join('+'));
  return each.every((ranks) => ranks === each[0]) ? each[0] || '' : each.join(' ');
}

/// "0..3 of 0+1; 4 of 0": next to each other, chunks of the same ranks are one.
function memoryText(text, chunks) {
  const runs = [];
  for (const chunk of chunks) {
    const last = runs[runs.length - 1];
    if (last && isSame(last[0].ranks, chunk.ranks)) last.push(chunk);
    else runs.push([chunk]);
  }
  return runs.map((run) => text.holds(numbersOf(run), ranksIn(run))).join(text.joint) || text.nothing;
}

/// The chunks of each rank after a round: its input, what it read and what it added up. A chunk that is part of
/// another one is left out, unless it is a result.
function holdings(movement, round) {
  const held = movement.before.map((chunks) => chunks.slice());
  const isResult = (rank, chunk) => movement.after[rank].some((c) => c.number === chunk.number && isSame(c.ranks, chunk.ranks));
  const put = (rank, chunk) => {
    const others = held[rank].filter((c) => c.number === chunk.number);
    if (others.some((c) => isSame(c.ranks, chunk.ranks))) return;
    if (!isResult(rank, chunk) && others.some((c) => isSubset(chunk.ranks, c.ranks))) return;
    held[rank] = held[rank].filter((c) => c.number !== chunk.number || isResult(rank, c) || !isSubset(c.ranks, chunk.ranks));
    held[rank].push(chunk);
  };
  for (const action of movement.actions) {
    if (action.round > round) continue;  // a message may be read long after it was sent
    const got = action.sums.length > 0 ? action.sums : action.messages.flatMap((message) => message.chunks);
    for (const chunk of got) put(action.rank, chunk);
  }
  return held.map((chunks, rank) => chunks.sort((a, b) => a.number - b.number)
    .map((chunk) => ({ ...chunk, isResult: isResult(rank, chunk) })));
}

/// The messages that are sent or read in a round.
function messagesOf(movement, round) {
  return movement.messages.filter((m) => m.round === round || movement.actions[m.action].round === round);
}

const chunkBytes = (movement, bytes) => (movement.chunksPerBlock ? bytes / movement.chunksPerBlock : 0);

/// The bytes on each link of a network, of the messages that are sent in `round`; of all, if it is null.
function linkLoads(movement, network, bytes, round) {
  const loads = new Array(network.links.length).fill(0);
  for (const message of movement.messages) {
    if (round !== null && message.round !== round) continue;
    for (const link of network.routes[message.from][message.to])
      loads[link] += message.chunks.length * chunkBytes(movement, bytes);
  }
  return loads;
}

function bytesText(bytes) {
  for (const [unit, name] of [[1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB']])
    if (bytes >= unit) return `${Number((bytes / unit).toPrecision(4))} ${name}`;
  return `${Number(bytes.toPrecision(4))} B`;
}

/// "1M", as the command line takes it.
function sizeText(bytes) {
  for (const [unit, name] of [[2 ** 30, 'G'], [2 ** 20, 'M'], [2 ** 10, 'K']])
    if (bytes >= unit && bytes % unit === 0) return `${bytes / unit}${name}`;
  return `${bytes}`;
}

const usText = (us) => `${Number(us.toFixed(3))}`;

/// "chunk 3 of ranks 0+1"
function wordsFor(text, chunks) {
  return chunks.length === 1 ? text.chunk(chunks[0]) : text.chunks(numbersOf(chunks), ranksIn(chunks));
}

/// A message with what people are told of it.
function told(text, movement, message) {
  const action = movement.actions[message.action];
  const later = action.round === message.round ? '' : text.readIn(action.round);
  return { ...message, what: wordsFor(text, message.chunks), step: action.name + later };
}
