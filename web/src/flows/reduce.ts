import { type FlowDraft, type FlowField, fieldsUsedBy, neededSteps, type Step } from './model';

/** reduceTo returns the part of a flow that makes the results of one step: what it needs, and the fields that this uses. */
export function reduceTo(draft: FlowDraft, id: string, name: string): FlowDraft {
  const needed = neededSteps(draft.steps, id);
  const steps = draft.steps.filter((step) => needed.has(step.id));
  const used = new Set(steps.flatMap(fieldsUsedBy));

  return {
    ...draft,
    name,
    shared: false,
    fields: keepFields(draft.fields, used),
    // The results of the step are what is asked for, so it runs whatever its condition says, and its results stay.
    steps: steps.map((step) => (step.id === id ? asResult(step) : step)),
    results: [id],
  };
}

function asResult(step: Step): Step {
  const { when: _, drop: __, ...kept } = step;

  return kept as Step;
}

function keepFields(fields: readonly FlowField[], used: ReadonlySet<string>): FlowField[] {
  return fields.flatMap((field) => {
    if (Array.isArray(field.fields)) {
      const kept = keepFields(field.fields, used);
      return kept.length > 0 ? [{ ...field, fields: kept }] : [];
    }
    return used.has(field.key ?? '') ? [field] : [];
  });
}
