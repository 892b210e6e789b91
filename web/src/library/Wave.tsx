/** heightsOf draws sound as bars; the same file always has the same bars. They are a sign for sound, not a measurement. */
function heightsOf(id: string, count: number): number[] {
  let seed = 7;
  for (const character of id) {
    seed = (seed * 31 + character.charCodeAt(0)) % 65_521;
  }

  return Array.from({ length: count }, (_, bar) => {
    seed = (seed * 75 + 74) % 65_537;
    const swell = Math.sin(((bar + 0.5) / count) * Math.PI);
    return 8 + swell * (10 + (seed / 65_537) * 34);
  });
}

/** Wave is the picture of a sound, which has none. */
export function Wave({ id }: { id: string }) {
  const heights = heightsOf(id, 13);
  const path = heights.map((height, bar) => `M${6 + bar * 9} ${30 - height / 2}v${height}`).join('');

  return (
    <svg viewBox="0 0 120 60" width="100%" height="54%" aria-hidden="true">
      <path d={path} stroke="currentColor" strokeWidth="4" strokeLinecap="round" fill="none" />
    </svg>
  );
}
