import { useAccount } from '../data/account';
import { useAction } from '../data/action';
import { ErrorFault } from '../data/ErrorFault';
import { saveFromService } from '../data/save';
import { text as shared } from '../text/shared';
import { text } from '../text/you';
import { Button, ButtonLink } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { Facts } from '../ui/Figures';
import { formatDay } from '../ui/format';
import { Panel } from '../ui/Panel';

/** YourData shows the person's account, downloads everything about the person, and leads to the deletion of the account. */
export function YourData() {
  const { me } = useAccount();
  const save = useAction(() => saveFromService('/api/v2/me/export', 'atelier-export.zip'), {
    done: () => text.exported,
  });

  const download = (
    <Button icon="download" disabled={save.busy || save.wait > 0} onClick={() => save.run()}>
      {save.wait > 0 ? shared.waitSeconds(save.wait) : save.busy ? text.exportBusy : text.exportButton}
    </Button>
  );
  const leave = (
    <ButtonLink kind="danger" icon="trash" href="/account/delete" external>
      {text.deletionButton}
    </ButtonLink>
  );

  return (
    <>
      <Panel title={text.person}>
        <Facts
          facts={[
            [
              text.personEmail,
              <span key="email" className="row">
                {me.user.email}
                {!me.user.email_verified && <Tag tone="warn">{text.personUnverified}</Tag>}
              </span>,
            ],
            [
              text.personProvider,
              me.user.sign_in_provider === 'password' ? text.personPassword : me.user.sign_in_provider,
            ],
            [text.personSince, formatDay(me.user.created)],
            [text.personId, <code key="id">{me.user.uid}</code>],
          ]}
        />
      </Panel>
      <Panel title={text.export} actions={download}>
        <div className="stack">
          <p className="soft">{text.exportWhy}</p>
          <p className="small soft">
            {text.exportPage} <a href="/account">{text.accountPage}</a>
          </p>
          {save.error !== null && <ErrorFault error={save.error} />}
        </div>
      </Panel>
      <Panel title={text.deletion} actions={leave}>
        <p className="soft">{text.deletionWhy}</p>
      </Panel>
    </>
  );
}
