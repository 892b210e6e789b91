const storageKey = (accountId: string) => `atelier-tool ${accountId}`;

/** rememberTool keeps the tool that an account used last in this browser. */
export function rememberTool(accountId: string, toolId: string): void {
  try {
    localStorage.setItem(storageKey(accountId), toolId);
  } catch {
    // The browser's storage is full: the next visit starts with the first tool.
  }
}

/** recallTool returns the tool that an account used last in this browser. */
export function recallTool(accountId: string): string | undefined {
  return localStorage.getItem(storageKey(accountId)) ?? undefined;
}
