import { useState } from 'react';
import { useAction } from '../data/action';
import type { Company } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { saveFromService } from '../data/save';
import { addressOf } from '../routes';
import { text } from '../text/reports';
import { Field, TextInput } from '../ui/Field';
import { Menu } from '../ui/Menu';
import { PageHead } from '../ui/PageHead';
import { Segments } from '../ui/Segments';
import styles from './Reports.module.css';
import { canReport, type Report, type ReportChange } from './report';
import { isDay, type Span } from './span';
import { listSpans, nameSpan } from './spans';
import { csvName, type Group, groups } from './usage';

type Props = { report: Report; companies: Company[]; onChange: (change: ReportChange) => void };

/** ReportHead chooses the company, the groups and the span of a report, and saves it as a file. */
export function ReportHead({ report, companies, onChange }: Props) {
  const [choosing, setChoosing] = useState(false);
  const { company, group, span, today } = report;

  return (
    <PageHead title={text.title}>
      <Menu
        label={text.company(company.name)}
        end="chevronDown"
        items={companies.map((one) => ({
          label: one.name,
          icon: 'users',
          checked: one.id === company.id,
          onSelect: () => onChange({ company: one.id, of_team: undefined, tool: undefined, person: undefined }),
        }))}
      >
        <span className={styles.company}>{company.name}</span>
      </Menu>
      <span className="grow" />
      <div className="hide-small">
        <GroupChoice group={group} onChange={onChange} />
      </div>
      <Menu
        label={text.span(nameSpan(span, today))}
        icon="calendar"
        kind="plain"
        end="chevronDown"
        items={[
          ...listSpans(today).map((one) => ({
            label: one.label,
            onSelect: () => onChange({ span: one.value || undefined }),
          })),
          'line',
          { label: text.spans.other, icon: 'calendar', onSelect: () => setChoosing(true) },
        ]}
      >
        {nameSpan(span, today)}
      </Menu>
      {canReport(company) && (
        <div className="hide-small">
          <CsvMenu report={report} />
        </div>
      )}
      <SpanDialog span={span} open={choosing} onChange={onChange} onClose={() => setChoosing(false)} />
    </PageHead>
  );
}

/** GroupChoice chooses what a report is divided by. */
export function GroupChoice({ group, onChange }: { group: Group; onChange: (change: ReportChange) => void }) {
  return (
    <Segments
      label={text.groupBy}
      value={group}
      options={groups.map((value) => ({ value, label: text.groups[value] }))}
      onChange={(value) => onChange({ group: value })}
    />
  );
}

/** CsvMenu saves a report as a file. */
export function CsvMenu({ report }: { report: Report }) {
  const save = useAction(
    async (kind: 'usage' | 'runs') => {
      const name = csvName(kind, report.company.name, report.span);
      const groupBy = kind === 'usage' ? { group_by: `day,${report.group}` } : {};
      await saveFromService(addressOf(`/api/v2/reports/${kind}`, { ...report.query, ...groupBy, format: 'csv' }), name);
      return name;
    },
    { done: text.csvSaved, toastRefusal: true },
  );

  return (
    <Menu
      label={text.csv}
      icon="download"
      kind="plain"
      items={[
        { label: text.csvUsage, icon: 'chart', disabled: save.busy, onSelect: () => save.run('usage') },
        { label: text.csvRuns, icon: 'layers', disabled: save.busy, onSelect: () => save.run('runs') },
      ]}
    >
      {text.csv}
    </Menu>
  );
}

type SpanDialogProps = { span: Span; open: boolean; onChange: (change: ReportChange) => void; onClose: () => void };

function SpanDialog({ open, ...rest }: SpanDialogProps) {
  return open ? <SpanForm {...rest} open /> : null;
}

function SpanForm({ span, onChange, onClose }: SpanDialogProps) {
  const [first, setFirst] = useState(span.first);
  const [last, setLast] = useState(span.last);
  const wrong = isDay(first) && isDay(last) && first > last;
  const choose = useAction(async () => {
    onChange({ span: `${first}..${last}` });
    onClose();
  });

  return (
    <FormDialog
      open
      title={text.spanTitle}
      submit={text.spanShow}
      action={choose}
      disabled={wrong || !isDay(first) || !isDay(last)}
      onSubmit={() => choose.run()}
      onClose={onClose}
    >
      <div className={styles.dates}>
        <Field label={text.spanFrom}>
          {(attributes) => (
            <TextInput type="date" {...attributes} value={first} onChange={(event) => setFirst(event.target.value)} />
          )}
        </Field>
        <Field label={text.spanTo} problem={wrong ? text.spanWrong : undefined}>
          {(attributes) => (
            <TextInput type="date" {...attributes} value={last} onChange={(event) => setLast(event.target.value)} />
          )}
        </Field>
      </div>
    </FormDialog>
  );
}
