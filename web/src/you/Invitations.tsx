import { useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../api/client';
import { meKey, useAccount } from '../data/account';
import { useAction } from '../data/action';
import { companiesKey } from '../data/companies';
import { QueryView } from '../data/ListView';
import { text as shared } from '../text/shared';
import { text } from '../text/you';
import { Button, ButtonLink } from '../ui/Button';
import { formatTime } from '../ui/format';
import { Notice } from '../ui/Notice';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';

type Received = Schemas['ReceivedInvitation'];

const invitationsKey = ['invitations'];

/** useInvitations reads the invitations for the person's e-mail address. */
export function useInvitations() {
  return useQuery({ queryKey: invitationsKey, queryFn: async () => dataOf(await api.GET('/invitations')).data });
}

/** Invitations lists the invitations of the person, and accepts them. */
export function Invitations() {
  const { me } = useAccount();
  const invitations = useInvitations();
  const accept = useAction(
    (one: Received) => api.POST('/invitations/{invitation_id}/accept', { params: { path: { invitation_id: one.id } } }),
    {
      done: (_, one) => text.accepted(one.company_name),
      refresh: [invitationsKey, meKey, companiesKey],
      toastRefusal: true,
    },
  );
  const empty = me.user.email_verified ? (
    <Empty title={text.invitationsEmpty}>{text.invitationsEmptyWhy}</Empty>
  ) : (
    <Notice
      icon="mail"
      tone="warn"
      actions={
        <ButtonLink href="/account" external>
          {text.verify}
        </ButtonLink>
      }
    >
      {text.invitationsUnverified}
    </Notice>
  );

  return (
    <Panel title={text.invitations}>
      <QueryView query={invitations} height={60}>
        {(rows) =>
          rows.length === 0 ? (
            empty
          ) : (
            <div className="stack">
              <Table
                label={text.invitations}
                rows={rows}
                keyOf={(row) => row.id}
                columns={[
                  { head: text.invitations, cell: (row) => text.invitationTo(row.company_name, row.team_name) },
                  { head: text.invitationEndsHead, cell: (row) => formatTime(row.expires) },
                  {
                    head: shared.actions,
                    quiet: true,
                    end: true,
                    cell: (row) => (
                      <Button
                        kind="main"
                        small
                        icon="check"
                        aria-label={text.acceptOf(row.company_name)}
                        disabled={accept.busy}
                        onClick={() => accept.run(row)}
                      >
                        {text.accept}
                      </Button>
                    ),
                  },
                ]}
              />
              <p className="small soft">{text.decline}</p>
            </div>
          )
        }
      </QueryView>
    </Panel>
  );
}
