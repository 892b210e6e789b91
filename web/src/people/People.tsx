import type { ReactNode } from 'react';
import { Redirect, useLocation } from 'wouter';
import { useAccount } from '../data/account';
import { type Company, type Team, useCompanies, useTeams } from '../data/companies';
import { ErrorFault } from '../data/ErrorFault';
import { PartPage } from '../data/PartPage';
import { text } from '../text/people';
import { ButtonLink } from '../ui/Button';
import { Tag } from '../ui/Chip';
import type { IconName } from '../ui/icons';
import { Menu, type MenuItem } from '../ui/Menu';
import { PageHead } from '../ui/PageHead';
import { Column } from '../ui/Panel';
import { Bone, Empty, Waiting } from '../ui/States';
import { Audit } from './Audit';
import { CompanyBudgets } from './CompanyBudgets';
import { CompanyInvitations } from './CompanyInvitations';
import { CompanyMembers } from './CompanyMembers';
import { CompanyRoles } from './CompanyRoles';
import { CompanySettings } from './CompanySettings';
import { CompanyTokens } from './CompanyTokens';
import { Domains } from './Domains';
import { useTeam } from './queries';
import { Scim } from './Scim';
import { TeamBudget } from './TeamBudget';
import { TeamMembers } from './TeamMembers';
import { TeamRoles } from './TeamRoles';
import { TeamSettings } from './TeamSettings';
import { Teams } from './Teams';

type PartId = keyof typeof text.parts;
type PartList<P> = Array<{ id: PartId; icon: IconName; content: (props: P) => ReactNode }>;

const companyParts: PartList<{ company: Company }> = [
  { id: 'members', icon: 'users', content: CompanyMembers },
  { id: 'invitations', icon: 'mail', content: CompanyInvitations },
  { id: 'roles', icon: 'lock', content: CompanyRoles },
  { id: 'teams', icon: 'layers', content: Teams },
  { id: 'budgets', icon: 'coins', content: CompanyBudgets },
  { id: 'domains', icon: 'link', content: Domains },
  { id: 'scim', icon: 'repeat', content: Scim },
  { id: 'tokens', icon: 'key', content: CompanyTokens },
  { id: 'audit', icon: 'clock', content: Audit },
  { id: 'settings', icon: 'settings', content: CompanySettings },
];

const teamParts: PartList<{ company: Company; team: Team }> = [
  { id: 'members', icon: 'users', content: TeamMembers },
  { id: 'roles', icon: 'lock', content: TeamRoles },
  { id: 'budget', icon: 'coins', content: TeamBudget },
  { id: 'settings', icon: 'settings', content: TeamSettings },
];

/** People shows a company or a team of the person: who is in it, and what they may do. */
export default function People({ ownerId, part = 'members' }: { ownerId?: string; part?: string }) {
  const { me, account, linkTo } = useAccount();
  const companies = useCompanies();
  const company = companies.data?.find((one) => one.id === ownerId);
  const isTeam = companies.data !== undefined && ownerId !== undefined && !company;
  const team = useTeam(isTeam ? ownerId : undefined);
  const companyOfTeam = companies.data?.find((one) => one.id === team.data?.company_id);
  const managed = companies.data?.find((one) => one.permissions.includes('MANAGE_MEMBERS'));
  const myTeam = me.accounts.find((one) => one.kind === 'TEAM');
  const first = account.kind === 'TEAM' ? account.id : (managed ?? myTeam ?? companies.data?.[0])?.id;

  if (companies.data && !ownerId && first) {
    return <Redirect to={linkTo(`/people/${first}`)} replace />;
  }
  if (companies.data?.length === 0) {
    const see = <ButtonLink href={linkTo('/you/invitations')}>{text.seeInvitations}</ButtonLink>;
    return (
      <Frame>
        <Empty title={text.none} actions={see}>
          {text.noneWhy}
        </Empty>
      </Frame>
    );
  }
  if (company) {
    return <Owner owner={company} company={company} part={part} parts={companyParts} props={{ company }} />;
  }
  if (team.data && companyOfTeam) {
    const props = { company: companyOfTeam, team: team.data };
    return <Owner owner={team.data} company={companyOfTeam} part={part} parts={teamParts} props={props} />;
  }
  if (companies.isError) {
    return (
      <Frame>
        <ErrorFault error={companies.error} onRetry={() => void companies.refetch()} />
      </Frame>
    );
  }
  if (team.isError) {
    return (
      <Frame>
        <Empty title={text.gone} actions={<ButtonLink href={linkTo('/people')}>{text.title}</ButtonLink>}>
          {text.goneWhy}
        </Empty>
      </Frame>
    );
  }
  return (
    <Frame>
      <Waiting>
        <Bone height={38} />
        <Bone height={320} />
      </Waiting>
    </Frame>
  );
}

function Frame({ children }: { children: ReactNode }) {
  return (
    <Column>
      <PageHead title={text.title} />
      {children}
    </Column>
  );
}

type OwnerProps<P> = {
  owner: { id: string; name: string };
  company: Company;
  part: string;
  parts: PartList<P>;
  props: P;
};

function Owner<P extends object>({ owner, company, part, parts, props }: OwnerProps<P>) {
  const shown = parts.map(({ id, icon, content: Content }) => ({
    id,
    icon,
    label: text.parts[id],
    content: <Content key={owner.id} {...props} />,
  }));
  const head = (
    <>
      <OwnerChoice owner={owner} />
      <Tag>{owner.id === company.id ? text.companyMark : text.teamOf(company.name)}</Tag>
    </>
  );

  return <PartPage title={text.title} path={`/people/${owner.id}`} parts={shown} part={part} head={head} />;
}

/** OwnerChoice goes to another company or team; the teams of the company that is open stand below it. */
function OwnerChoice({ owner }: { owner: { id: string; name: string } }) {
  const { me, linkTo } = useAccount();
  const [, navigate] = useLocation();
  const companies = useCompanies();
  const open = companies.data?.find((one) => one.id === owner.id);
  const teams = useTeams(open?.id);
  const go = (id: string) => () => navigate(linkTo(`/people/${id}`));

  const items: MenuItem[] = (companies.data ?? []).flatMap((company) => {
    const mine = me.accounts
      .filter((one) => one.company_id === company.id)
      .map(({ id, label }) => ({ id, name: label }));
    const below = company.id === open?.id ? (teams.data ?? mine) : mine;
    return [
      { label: company.name, icon: 'users' as const, checked: company.id === owner.id, onSelect: go(company.id) },
      ...below.map((team) => ({ label: team.name, checked: team.id === owner.id, onSelect: go(team.id) })),
    ];
  });

  return (
    <Menu label={text.choose(owner.name)} items={items} end="chevronDown">
      {owner.name}
    </Menu>
  );
}
