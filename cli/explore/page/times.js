
// The time line: a track for each rank; it waits, it adds, and messages go from track to track.

/// Steps of 1, 2 or 5 times a power of ten, about eight of them.
function ticksUpTo(total) {
  const rough = total / 8, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) || 10);
  return Array.from({ length: Math.floor(total / step + 1e-9) + 1 }, (_, i) => i * step);
}

function drawAxis(svg, total, x, height) {
  if (total === 0) return;
  for (const tick of ticksUpTo(total)) {
    draw(svg, 'line', { x1: x(tick), x2: x(tick), y1: 4, y2: height - 20, class: 'tick' });
    label(svg, x(tick), height - 6, `${Number(tick.toPrecision(6))}`, 'middle quiet');
  }
  label(svg, 4, height - 6, 'us', 'quiet');
}

function drawTracks(svg, movement, times, x, y, tall, text) {
  for (let rank = 0; rank < movement.ranks; ++rank) {
    label(svg, 4, y(rank) + 4, text.rank(rank), '');
    const bars = (spans, name, words, height) => spans.forEach(({ begin, end }) => {
      const g = group(svg, words(rank, usText(begin), usText(end)), name);
      draw(g, 'rect', { x: x(begin), y: y(rank) - height / 2, width: Math.max(0.5, x(end) - x(begin)), height, class: name });
    });
    bars(times.waits[rank], 'wait', text.waits, tall * 0.55);
    bars(times.additions[rank], 'add', text.adds, tall * 0.55);
    draw(svg, 'line', { x1: x(0), x2: x(times.total), y1: y(rank), y2: y(rank), class: 'track' });
  }
}

function drawFlights(svg, movement, times, round, x, y, text) {
  const order = movement.messages.map((message, i) => ({ message, time: times.messages[i] }));
  for (const now of [false, true])  // those of the round on top
    for (const { message, time } of order.filter((one) => (one.message.round === round) === now)) {
      const words = { ...told(text, movement, message), begin: usText(time.begin), end: usText(time.end) };
      const g = group(svg, text.flight(words), now ? 'flights now' : 'flights');
      draw(g, 'line', { x1: x(time.begin), y1: y(message.from), x2: x(time.end), y2: y(message.to), class: 'flight' });
    }
}

function drawTimes(movement, times, round, text) {
  const tall = movement.ranks > 8 ? 20 : 28, width = 1200, height = tall * movement.ranks + 30;
  const svg = picture('times', width, height, `${text.times}: ${text.takes(usText(times.total))}`, 0.6, 1.3);
  const x = (us) => 84 + (times.total > 0 ? (us / times.total) * (width - 84 - 30) : 0);
  const y = (rank) => 4 + tall * (rank + 0.5);
  const now = times.messages.filter((_, i) => movement.messages[i].round === round);
  if (now.length > 0) {
    const begin = Math.min(...now.map((time) => time.begin)), end = Math.max(...now.map((time) => time.end));
    draw(svg, 'rect', { x: x(begin), y: 4, width: Math.max(1, x(end) - x(begin)), height: height - 24, class: 'round' });
  }
  drawAxis(svg, times.total, x, height);
  drawTracks(svg, movement, times, x, y, tall, text);
  drawFlights(svg, movement, times, round, x, y, text);
  crowd(svg, now.length);
}

function timesLegend(movement, times, text) {
  const { machine } = DATA;
  const how = machine.name ? text.calibrated(machine.name) : text.uncalibrated;
  document.getElementById('model').textContent = text.simulated(how, text.model(machine), text.takes(usText(times.total)));
  const line = (svg) => draw(svg, 'line', { x1: 2, y1: 4, x2: 32, y2: 18, class: 'flight' });
  const bar = (name) => (svg) => draw(svg, 'rect', { x: 2, y: 5, width: 30, height: 12, class: name });
  const lines = [[bar('wait'), text.legendWait], [line, text.legendFlight]];
  if (times.additions.some((spans) => spans.length > 0)) lines.push([bar('add'), text.legendAdd]);
  legend('times-legend', lines);
}
