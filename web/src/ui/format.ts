// Numbers, sizes and times as people read them, by the browser's language.

const numbers = new Intl.NumberFormat();
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const sameYear = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
});
const days = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });

/** formatNumber writes a number with the separators of the language. */
export const formatNumber = (value: number) => numbers.format(value);

/** formatBytes writes a size with one decimal at most. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** step;

  return `${numbers.format(value >= 100 || step === 0 ? Math.round(value) : Math.round(value * 10) / 10)} ${units[step]}`;
}

/** formatSeconds writes a length such as 0:06 or 1:02:30. */
export function formatSeconds(seconds: number): string {
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const [hours = 0, minutes = 0, rest = 0] = parts;
  const pad = (value: number) => String(value).padStart(2, '0');

  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
}

/** formatAgo writes how long ago something was, and the day once it was more than six days ago. */
export function formatAgo(time: string, now = Date.now()): string {
  const seconds = (new Date(time).getTime() - now) / 1000;
  const age = Math.abs(seconds);
  if (age < 45) {
    return 'just now';
  }
  if (age < 45 * 60) {
    return relative.format(Math.round(seconds / 60), 'minute');
  }
  if (age < 22 * 3600) {
    return relative.format(Math.round(seconds / 3600), 'hour');
  }
  if (age < 6 * 86_400) {
    return relative.format(Math.round(seconds / 86_400), 'day');
  }
  return days.format(new Date(time));
}

/** formatTime writes a day and time. */
export const formatTime = (time: string) => sameYear.format(new Date(time));

/** formatDay writes a day. */
export const formatDay = (time: string | Date) => days.format(new Date(time));

/** formatClock writes a time of day. */
export const formatClock = (time: string) => clock.format(new Date(time));

const percents = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });

/** formatPercent writes a part of one as a percentage with one decimal at most. */
export const formatPercent = (part: number) => percents.format(part);

/** formatDuration writes a length of time with its two largest units, such as 31 h 12 m or 20 s. */
export function formatDuration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) {
    return `${whole} s`;
  }
  if (whole < 3600) {
    return `${Math.floor(whole / 60)} m ${whole % 60} s`;
  }
  if (whole < 72 * 3600) {
    return `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60) % 60} m`;
  }
  return `${numbers.format(Math.floor(whole / 86_400))} d ${Math.floor(whole / 3600) % 24} h`;
}
