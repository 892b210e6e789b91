import { useAccount } from '../data/account';
import { ErrorFault } from '../data/ErrorFault';
import { text } from '../text/reports';
import { Notice } from '../ui/Notice';
import { PageHead } from '../ui/PageHead';
import { Column } from '../ui/Panel';
import { Bone, Empty, Waiting } from '../ui/States';
import { Budgets } from './Budgets';
import { DayBars } from './DayBars';
import { FilterRow } from './FilterRow';
import { GroupTable } from './GroupTable';
import { Numbers } from './Numbers';
import { useGroups } from './queries';
import { ReportHead } from './ReportHead';
import styles from './Reports.module.css';
import { RunTable } from './RunTable';
import { canReport, type Report, type ReportChange, useReport } from './report';

/** Reports shows what the teams of a company have made and spent: figures, days, groups, budgets and runs. */
export default function Reports() {
  const { companies, report, change } = useReport();

  if (!companies.data) {
    return (
      <Column>
        <PageHead title={text.title} />
        {companies.isError ? (
          <ErrorFault error={companies.error} onRetry={() => void companies.refetch()} />
        ) : (
          <Waiting>
            <Bone height={110} />
            <Bone height={320} />
          </Waiting>
        )}
      </Column>
    );
  }
  if (!report) {
    return (
      <Column>
        <PageHead title={text.title} />
        <Empty title={text.noCompany}>{text.noCompanyWhy}</Empty>
      </Column>
    );
  }
  return (
    <Column>
      <ReportHead report={report} companies={companies.data} onChange={change} />
      {canReport(report.company) ? <ReportBody report={report} onChange={change} /> : <Refusal report={report} />}
    </Column>
  );
}

function Refusal({ report: { company } }: { report: Report }) {
  const { me } = useAccount();
  const hasPermission = me.company_permissions[company.id]?.VIEW_COMPANY_REPORTS === true;

  return <Notice icon="lock">{hasPermission ? text.refusedPlan(company.name) : text.refused(company.name)}</Notice>;
}

function ReportBody({ report, onChange }: { report: Report; onChange: (change: ReportChange) => void }) {
  const groups = useGroups(report);

  return (
    <>
      <FilterRow report={report} onChange={onChange} />
      <Numbers report={report} />
      <DayBars report={report} ranked={groups.data?.rows} error={groups.error} />
      <div className={styles.duo}>
        <GroupTable report={report} groups={groups} onChange={onChange} />
        <Budgets report={report} />
      </div>
      <RunTable report={report} />
    </>
  );
}
