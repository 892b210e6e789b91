import { useState } from 'react';
import { askForNotifications, hasNotifications } from '../data/notifications';
import { setPreferences, usePreferences } from '../data/preferences';
import { text } from '../text/you';
import { Field, Switch } from '../ui/Field';
import { Notice } from '../ui/Notice';
import { Panel } from '../ui/Panel';
import { Segments } from '../ui/Segments';

/** Look sets how the studio looks and behaves in this browser. */
export function Look() {
  const { theme, letterKeys } = usePreferences();

  return (
    <>
      <Panel title={text.look}>
        <Field label={text.theme} group>
          {() => (
            <div>
              <Segments
                label={text.theme}
                value={theme}
                options={(['system', 'light', 'dark'] as const).map((value) => ({ value, label: text.themes[value] }))}
                onChange={(value) => setPreferences({ theme: value })}
              />
            </div>
          )}
        </Field>
      </Panel>
      <Panel title={text.keys}>
        <Switch
          label={text.letterKeys}
          help={text.letterKeysHelp}
          checked={letterKeys}
          onChange={(event) => setPreferences({ letterKeys: event.target.checked })}
        />
      </Panel>
      <Notifications />
    </>
  );
}

function Notifications() {
  const { notifications } = usePreferences();
  const [refused, setRefused] = useState(false);

  const change = async (on: boolean) => {
    const allowed = on && (await askForNotifications());
    setPreferences({ notifications: allowed });
    setRefused(on && !allowed);
  };

  return (
    <Panel title={text.notifications}>
      {hasNotifications() ? (
        <div className="stack">
          <Switch
            label={text.notify}
            help={text.notifyHelp}
            checked={notifications}
            onChange={(event) => void change(event.target.checked)}
          />
          {refused && (
            <Notice icon="bell" tone="warn">
              {text.notifyRefused}
            </Notice>
          )}
        </div>
      ) : (
        <Notice icon="bell">{text.notifyMissing}</Notice>
      )}
    </Panel>
  );
}
