import { text } from '../text/flows';
import { IconButton } from '../ui/Button';
import { useFlowEditor } from './context';
import { FlowPanel } from './FlowPanel';
import { FormPanel } from './FormPanel';
import { formId } from './layout';
import styles from './Panel.module.css';
import { StepPanel } from './StepPanel';
import type { Saving } from './useSaving';

/** SidePanel changes what is selected: a step, the form, or without a selection the flow as a whole. */
export function SidePanel({ saving }: { saving: Saving }) {
  const { draft, selected, select } = useFlowEditor();
  const step = draft.steps.find((one) => one.id === selected);
  const title = step ? text.panelOf(step.id) : selected === formId ? text.formPanel : text.flowPanel;

  return (
    <aside className={styles.panel} aria-label={title}>
      <header className={styles.head}>
        <h2 className="cut grow">{title}</h2>
        {selected !== undefined && (
          <IconButton icon="close" label={text.closePanel} onClick={() => select(undefined)} />
        )}
      </header>
      <div className={styles.scroll}>
        {saving.foreign && <p className={styles.note}>{text.readOnly}</p>}
        {step ? <StepPanel key={step.id} step={step} /> : selected === formId ? <FormPanel /> : <FlowPanel />}
      </div>
    </aside>
  );
}
