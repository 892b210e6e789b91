// The words of notifications.

export const text = {
  succeeded: (tool: string | null) => `${tool ?? 'A run'} is done`,
  failed: (tool: string | null) => `${tool ?? 'A run'} has failed`,
};
