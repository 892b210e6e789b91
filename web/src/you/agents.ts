const browsers: Array<[pattern: RegExp, name: string]> = [
  [/Edg(?:e|A|iOS)?\/\d/, 'Edge'],
  [/OPR\/|Opera/, 'Opera'],
  [/SamsungBrowser\//, 'Samsung Internet'],
  [/Firefox\/|FxiOS\//, 'Firefox'],
  [/(?:HeadlessChrome|Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];

const systems: Array<[pattern: RegExp, name: string]> = [
  [/Android/, 'Android'],
  [/iPhone|iPad|iPod/, 'iOS'],
  [/Windows/, 'Windows'],
  [/CrOS/, 'ChromeOS'],
  [/Mac OS X|Macintosh/, 'macOS'],
  [/Linux|X11/, 'Linux'],
];

/** nameAgent writes the user agent of a browser or an app as a person would say it, such as Chrome on Linux. */
export function nameAgent(agent: string): string {
  const find = (list: Array<[RegExp, string]>) => list.find(([pattern]) => pattern.test(agent))?.[1];
  const system = find(systems);
  const browser = agent.startsWith('Mozilla/') ? find(browsers) : undefined;

  if (browser) {
    return system ? `${browser} on ${system}` : browser;
  }
  return agent.split(/[\s/(]/)[0] || agent || '?';
}
