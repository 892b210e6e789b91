import type { Schemas } from '../api/client';

export type Setting = Schemas['OperatorSetting'];

/** filterSettings keeps the settings that have every word of a query in their names, values or meanings. */
export function filterSettings(settings: Setting[], query: string, changedOnly: boolean): Setting[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);

  return settings.filter((setting) => {
    const content = `${setting.name} ${setting.value ?? ''} ${setting.description}`.toLowerCase();
    return (!changedOnly || setting.source !== 'default') && words.every((word) => content.includes(word));
  });
}
