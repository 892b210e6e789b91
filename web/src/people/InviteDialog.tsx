import { useState } from 'react';
import { api, dataOf } from '../api/client';
import { problemOf, useAction } from '../data/action';
import type { Company } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { text } from '../text/people';
import { text as shared } from '../text/shared';
import { Button } from '../ui/Button';
import { CopyCode } from '../ui/CopyCode';
import { Dialog } from '../ui/Dialog';
import { Field, NumberInput, Select, TextInput } from '../ui/Field';
import { Segments } from '../ui/Segments';
import { useToast } from '../ui/Toast';
import { keys, useCompanyAccess, useCompanyRoles } from './queries';
import { RoleSelect } from './RoleSelect';
import { bodyOfTeam, noTeam, TeamFields } from './TeamFields';

const lives = Object.keys(text.lives).map(Number);

/** InviteDialog invites one person by e-mail, or makes a link for several people; the link is shown once. */
export function InviteDialog({ company, onClose }: { company: Company; onClose: () => void }) {
  const access = useCompanyAccess(company);
  const toast = useToast();
  const [by, setBy] = useState<'email' | 'link'>('email');
  const [email, setEmail] = useState('');
  const [companyRole, setCompanyRole] = useState('member');
  const [team, setTeam] = useState(noTeam);
  const [uses, setUses] = useState<number | undefined>(1);
  const [life, setLife] = useState(604_800);
  const [tried, setTried] = useState(false);
  const [link, setLink] = useState('');
  const roles = useCompanyRoles(company.id);

  const badEmail = by === 'email' && !/^\S+@\S+\.\S+$/.test(email.trim());
  const badUses = by === 'link' && !(uses !== undefined && Number.isInteger(uses) && uses >= 1 && uses <= 1000);
  const invite = useAction(
    async () =>
      dataOf(
        await api.POST('/companies/{company_id}/invitations', {
          params: { path: { company_id: company.id } },
          body: {
            email: by === 'email' ? email.trim() : null,
            company_role: companyRole,
            ...bodyOfTeam(team),
            uses: by === 'link' ? uses : null,
            lifetime_seconds: life,
          },
        }),
      ),
    {
      refresh: [keys.invitations(company.id)],
      onDone: (result) => {
        if (result.url) {
          setLink(result.url);
          return;
        }
        toast({ text: text.inviteSent(email.trim()) });
        onClose();
      },
    },
  );
  const submit = () => {
    setTried(true);
    if (!badEmail && !badUses) {
      invite.run();
    }
  };

  if (link) {
    return (
      <Dialog
        open
        onClose={onClose}
        title={text.inviteLink}
        actions={<Button onClick={onClose}>{shared.close}</Button>}
      >
        <div className="stack">
          <p>{text.inviteLinkWhy}</p>
          <CopyCode text={link} label={text.inviteLink} />
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog
      open
      title={text.inviteTitle(company.name)}
      submit={text.inviteSubmit}
      action={invite}
      fields={['email', 'company_role', 'team_id', 'team_role', 'uses']}
      onSubmit={submit}
      onClose={onClose}
    >
      <div>
        <Segments
          label={text.inviteBy}
          value={by}
          options={[
            { value: 'email', label: text.inviteByEmail },
            { value: 'link', label: text.inviteByLink },
          ]}
          onChange={setBy}
        />
      </div>
      {by === 'email' ? (
        <Field
          label={text.inviteEmail}
          problem={(tried && badEmail ? text.inviteEmailWrong : undefined) ?? problemOf(invite.error, 'email')}
        >
          {(attributes) => (
            <TextInput
              inputMode="email"
              autoComplete="off"
              {...attributes}
              value={email}
              onChange={(event) => setEmail(event.target.value)}
            />
          )}
        </Field>
      ) : (
        <Field
          label={text.inviteUses}
          problem={(tried && badUses ? text.inviteUsesWrong : undefined) ?? problemOf(invite.error, 'uses')}
        >
          {(attributes) => <NumberInput min={1} max={1000} step={1} {...attributes} value={uses} onChange={setUses} />}
        </Field>
      )}
      <RoleSelect
        label={text.inviteCompanyRole}
        roles={roles.data ?? []}
        value={companyRole}
        gives={access.permissions}
        problem={problemOf(invite.error, 'company_role')}
        onChange={setCompanyRole}
      />
      <TeamFields
        company={company}
        label={text.inviteTeam}
        none={text.inviteNoTeam}
        value={team}
        error={invite.error}
        onChange={setTeam}
      />
      <Field label={text.inviteLife}>
        {(attributes) => (
          <Select {...attributes} value={life} onChange={(event) => setLife(Number(event.target.value))}>
            {lives.map((seconds) => (
              <option key={seconds} value={seconds}>
                {text.lives[seconds]}
              </option>
            ))}
          </Select>
        )}
      </Field>
    </FormDialog>
  );
}
