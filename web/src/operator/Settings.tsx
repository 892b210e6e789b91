import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf } from '../api/client';
import { QueryView } from '../data/ListView';
import { text } from '../text/operator';
import { Chip, Tag } from '../ui/Chip';
import { SearchInput } from '../ui/Field';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import { filterSettings, type Setting } from './filter';
import styles from './Status.module.css';

/** Settings lists the settings in force, with where their values come from. Secrets are never shown. */
export function Settings() {
  const [query, setQuery] = useState('');
  const [changed, setChanged] = useState(false);
  const settings = useQuery({
    queryKey: ['operator', 'settings'],
    queryFn: async () => dataOf(await api.GET('/operator/settings')).data,
  });
  const actions = (
    <>
      <SearchInput
        className={styles.search}
        label={text.searchSetting}
        value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
      <Chip on={changed} onClick={() => setChanged(!changed)}>
        {text.settingsChanged}
      </Chip>
    </>
  );

  return (
    <Panel title={text.settings} actions={actions}>
      <div className="stack">
        <p className="soft">{text.settingsWhy}</p>
        <QueryView query={settings} height={400}>
          {(all) => {
            const rows = filterSettings(all, query, changed);
            return rows.length === 0 ? <Empty title={text.settingsEmpty} /> : <SettingTable settings={rows} />;
          }}
        </QueryView>
      </div>
    </Panel>
  );
}

function SettingTable({ settings }: { settings: Setting[] }) {
  return (
    <Table
      label={text.settings}
      rows={settings}
      keyOf={(setting) => setting.name}
      columns={[
        {
          head: text.settingName,
          wrap: true,
          cell: (setting) => (
            <>
              <code className={styles.value}>{setting.name}</code>
              <br />
              <span className="small soft">{setting.description}</span>
            </>
          ),
        },
        { head: text.settingValue, wrap: true, cell: (setting) => <Value setting={setting} /> },
        {
          head: text.settingSource,
          cell: (setting) => (
            <Tag tone={setting.source === 'default' ? undefined : 'hot'}>{text.sources[setting.source]}</Tag>
          ),
        },
      ]}
    />
  );
}

function Value({ setting }: { setting: Setting }) {
  if (setting.secret) {
    return <span className="soft">{setting.is_set ? text.settingSecret : text.settingSecretNone}</span>;
  }
  if (!setting.value) {
    return <span className="soft">{text.settingNone}</span>;
  }
  return <code className={styles.value}>{setting.value}</code>;
}
