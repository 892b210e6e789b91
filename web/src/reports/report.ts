import { useMemo } from 'react';
import { useAccount } from '../data/account';
import { type Company, useCompanies } from '../data/companies';
import { todayIn } from '../data/days';
import { useSearchValues } from '../data/search';
import { boundsIn, readSpan, type Span, spanBefore } from './span';
import { type Group, groups } from './usage';

/** Filters are the runs that a report is about. */
export type Filters = { team_id?: string; tool_id?: string; email?: string };

/** Report is what the address asks for. */
export type Report = {
  company: Company;
  today: string;
  span: Span;
  before: Span;
  group: Group;
  filters: Filters;
  /** The parameters of a call about the span. */
  query: Filters & { company_id: string; start_utc: string; end_utc: string };
  /** The parameters of the same call about the span before. */
  queryBefore: Filters & { company_id: string; start_utc: string; end_utc: string };
};

/** ReportChange is what a person chooses; it goes into the address. */
export type ReportChange = Partial<
  Record<'company' | 'span' | 'group' | 'of_team' | 'tool' | 'person', string | undefined>
>;

/** useReport reads from the address which report is wanted. Without a company in it, the first one with reports is taken. */
export function useReport() {
  const [search, setSearch] = useSearchValues();
  const { account } = useAccount();
  const companies = useCompanies();

  const all = companies.data;
  const company =
    all?.find((one) => one.id === search.get('company')) ??
    all?.find((one) => one.id === account.company_id && canReport(one)) ??
    all?.find(canReport) ??
    all?.[0];

  const report = useMemo(() => (company ? readReport(company, search) : undefined), [company, search]);
  const change = (values: ReportChange) => setSearch(values);

  return { companies, report, change };
}

/** canReport reports whether the person may read the reports of a company. */
export const canReport = (company: Company) =>
  company.plan === 'ENTERPRISE' && company.permissions.includes('VIEW_COMPANY_REPORTS');

function readReport(company: Company, search: URLSearchParams): Report {
  const today = todayIn(company.time_zone);
  const span = readSpan(search.get('span') ?? '', today);
  const before = spanBefore(span);
  const filters: Filters = {
    team_id: search.get('of_team') ?? undefined,
    tool_id: search.get('tool') ?? undefined,
    email: search.get('person') ?? undefined,
  };
  const chosen = groups.find((group) => group === search.get('group'));

  return {
    company,
    today,
    span,
    before,
    group: chosen ?? (filters.team_id ? 'tool' : 'team'),
    filters,
    query: { company_id: company.id, ...boundsIn(company.time_zone, span), ...filters },
    queryBefore: { company_id: company.id, ...boundsIn(company.time_zone, before), ...filters },
  };
}
