import { useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { useAction } from '../data/action';
import { type Company, useTeams } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { text } from '../text/people';
import { text as shared } from '../text/shared';
import { Button } from '../ui/Button';
import { formatTime } from '../ui/format';
import { Panel } from '../ui/Panel';
import { ReasonButton } from '../ui/ReasonButton';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import { Denied } from './Denied';
import { InviteDialog } from './InviteDialog';
import { keys, useCompanyAccess } from './queries';

type Invitation = Schemas['Invitation'];

const revokeCall = (invitation: Invitation) =>
  api.DELETE('/invitations/{invitation_id}', { params: { path: { invitation_id: invitation.id } } });

/** CompanyInvitations lists the open invitations of a company, makes new ones, sends them again and revokes them. */
export function CompanyInvitations({ company }: { company: Company }) {
  const access = useCompanyAccess(company);
  const refused = access.refuse('MANAGE_MEMBERS');
  const key = keys.invitations(company.id);
  const teams = useTeams(company.id);
  const [inviting, setInviting] = useState(false);
  const [leaving, setLeaving] = useState<Invitation>();
  const list = useList(
    key,
    async (cursor) =>
      dataOf(
        await api.GET('/companies/{company_id}/invitations', {
          params: { path: { company_id: company.id }, query: { limit: 50, cursor } },
        }),
      ),
    { enabled: !refused },
  );
  const resend = useAction((invitation: Invitation) => sendAgain(company, invitation), {
    done: () => text.resent,
    refresh: [key],
    toastRefusal: true,
  });
  const teamName = (id: string | null) => teams.data?.find((team) => team.id === id)?.name ?? id;

  const invite = (
    <ReasonButton kind="main" icon="mail" reason={refused} onClick={() => setInviting(true)}>
      {text.invite}
    </ReasonButton>
  );

  return (
    <Panel title={text.invitations} actions={invite}>
      <Denied reason={refused}>
        <ListView list={list} empty={<Empty title={text.invitationsEmpty}>{text.invitationsEmptyWhy}</Empty>}>
          {(rows) => (
            <Table
              label={text.invitations}
              rows={rows}
              keyOf={(row) => row.id}
              columns={[
                { head: text.invitationWho, cell: nameInvited },
                {
                  head: text.invitationRoles,
                  cell: (row) =>
                    text.invitationRolesOf(
                      row.company_role,
                      row.team_id && `${teamName(row.team_id)}: ${row.team_role}`,
                    ),
                },
                { head: text.invitationEnds, cell: (row) => formatTime(row.expires) },
                {
                  head: shared.actions,
                  quiet: true,
                  end: true,
                  cell: (row) => (
                    <span className="row">
                      <span className="grow" />
                      <ReasonButton
                        small
                        icon="send"
                        aria-label={text.resendTo(nameInvited(row))}
                        reason={row.email ? undefined : text.resendLink}
                        disabled={resend.busy}
                        onClick={() => resend.run(row)}
                      >
                        {text.resend}
                      </ReasonButton>
                      <Button
                        small
                        kind="danger"
                        aria-label={text.revokeOne(nameInvited(row))}
                        onClick={() => setLeaving(row)}
                      >
                        {text.revoke}
                      </Button>
                    </span>
                  ),
                },
              ]}
            />
          )}
        </ListView>
      </Denied>
      {inviting && <InviteDialog company={company} onClose={() => setInviting(false)} />}
      <RevokeDialog company={company} invitation={leaving} onClose={() => setLeaving(undefined)} />
    </Panel>
  );
}

/** nameInvited says whom an invitation is for. */
const nameInvited = (invitation: Invitation) => invitation.email ?? text.invitationAnyone(invitation.uses_left);

/** sendAgain makes the same invitation anew, and then revokes the old one. */
async function sendAgain(company: Company, invitation: Invitation): Promise<void> {
  await api.POST('/companies/{company_id}/invitations', {
    params: { path: { company_id: company.id } },
    body: {
      email: invitation.email,
      company_role: invitation.company_role,
      team_id: invitation.team_id,
      team_role: invitation.team_role,
    },
  });
  await revokeCall(invitation);
}

type RevokeProps = { company: Company; invitation: Invitation | undefined; onClose: () => void };

function RevokeDialog({ company, invitation, onClose }: RevokeProps) {
  const revoke = useAction(revokeCall, {
    done: () => text.revoked,
    refresh: [keys.invitations(company.id)],
    onDone: onClose,
  });

  return (
    <FormDialog
      open={invitation !== undefined}
      title={text.revokeTitle}
      submit={text.revoke}
      action={revoke}
      danger
      onSubmit={() => invitation && revoke.run(invitation)}
      onClose={onClose}
    >
      <p>{text.revokeWhy}</p>
    </FormDialog>
  );
}
