import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf } from '../api/client';
import { ApiError } from '../api/errors';
import { useAccount } from '../data/account';
import { useAction } from '../data/action';
import { FormDialog } from '../data/FormDialog';
import { QueryView } from '../data/ListView';
import { text } from '../text/you';
import { Button } from '../ui/Button';
import { CopyCode } from '../ui/CopyCode';
import { formatTime } from '../ui/format';
import { Notice } from '../ui/Notice';
import { Panel } from '../ui/Panel';
import { Deliveries } from './Deliveries';

/** Webhooks shows the secret that signs the account's webhooks, and the recent deliveries. */
export function Webhooks() {
  return (
    <>
      <Secret />
      <Deliveries />
    </>
  );
}

function Secret() {
  const { teamId } = useAccount();
  const key = ['webhook-secret', teamId ?? 'personal'];
  const [shown, setShown] = useState(false);
  const [asking, setAsking] = useState(false);

  const secret = useQuery({
    queryKey: key,
    // A secret is read when a person asks for it, and is not kept afterwards.
    enabled: shown,
    gcTime: 0,
    queryFn: async () => dataOf(await api.GET('/webhook-secret', { params: { query: { team_id: teamId } } })),
  });
  const rotate = useAction(() => api.POST('/webhook-secret/rotate', { params: { query: { team_id: teamId } } }), {
    done: () => text.rotated,
    refresh: [key],
    onDone: () => {
      setAsking(false);
      setShown(true);
    },
  });
  const refused = secret.error instanceof ApiError && secret.error.status === 403;

  const actions = (
    <>
      <Button icon="key" aria-expanded={shown} onClick={() => setShown(!shown)}>
        {shown ? text.secretHide : text.secretShow}
      </Button>
      <Button icon="repeat" onClick={() => setAsking(true)}>
        {text.rotate}
      </Button>
    </>
  );

  return (
    <Panel title={text.secret} actions={actions}>
      <div className="stack">
        <p className="soft">{text.secretWhy}</p>
        {shown && refused && <Notice icon="lock">{text.secretRefused}</Notice>}
        {shown && !refused && (
          <QueryView query={secret} height={42}>
            {(data) => (
              <>
                <CopyCode text={data.secret} label={text.secretLabel} />
                <p className="small soft">
                  {text.secretMade(formatTime(data.created))}{' '}
                  {data.previous_valid_until && text.secretPrevious(formatTime(data.previous_valid_until))}
                </p>
              </>
            )}
          </QueryView>
        )}
      </div>
      <FormDialog
        open={asking}
        title={text.rotateTitle}
        submit={text.rotate}
        action={rotate}
        onSubmit={() => rotate.run()}
        onClose={() => setAsking(false)}
      >
        <p>{text.rotateWhy}</p>
      </FormDialog>
    </Panel>
  );
}
