/** classes joins the class names that apply. */
export function classes(...names: Array<string | false | undefined | null>): string {
  return names.filter(Boolean).join(' ');
}
