/** The addresses of the studio's pages. The service has the same list and answers each with the studio's page. */
export const paths = [
  '/',
  '/create/:tool_id',
  '/library',
  '/library/:library_id',
  '/boards',
  '/boards/:board_id',
  '/flows',
  '/flows/:flow_id',
  '/reports',
  '/you',
  '/you/:part',
  '/people',
  '/people/:team_id',
  '/people/:team_id/:part',
  '/operator',
  '/operator/:part',
  '/welcome',
] as const;

/** addressOf writes the address of a page with the account that is acted for and other search parameters. */
export function addressOf(path: string, parameters: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value) {
      search.set(name, value);
    }
  }
  const query = search.toString();

  return query ? `${path}?${query}` : path;
}
