import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { useAccount } from '../data/account';
import { type ToolDetail, toolQuery } from '../data/catalog';
import { ErrorFault } from '../data/ErrorFault';
import { runsKey } from '../data/runs';
import { checkForm } from '../form/check';
import { Form } from '../form/Form';
import { inputsOf, leavesOf, type Value, type Values } from '../form/fields';
import { addMedia } from '../form/mediafields';
import { useUploads } from '../form/uploads';
import { text } from '../text/flows';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Bone, Waiting } from '../ui/States';
import { useToast } from '../ui/Toast';
import { useFlowEditor } from './context';
import { fitName } from './model';
import { reduceTo } from './reduce';
import { bodyOf } from './useCheck';

type Props = { id: string; onStarted: (requestId: string) => void; onClose: () => void };

/**
 * RunPart runs one step and all that it needs. The service runs saved flows only, so the part is saved as a flow while
 * its form is open, and deleted when it was started or the dialog is closed; an accepted run goes on without it.
 */
export default function RunPart({ id, onStarted, onClose }: Props) {
  const { teamId } = useAccount();
  const { draft } = useFlowEditor();
  const cache = useQueryClient();
  const [part] = useState(() =>
    reduceTo(
      draft,
      id,
      fitName(draft.name || text.untitled, (name) => text.partName(name, id)),
    ),
  );
  const [tool, setTool] = useState<ToolDetail>();
  const [error, setError] = useState<unknown>();
  const closeDialog = useEffectEvent(onClose);

  useEffect(() => {
    const query = { team_id: teamId };
    const remove = (flow: Schemas['Flow']) =>
      api
        .DELETE('/flows/{flow_id}', { params: { path: { flow_id: flow.id }, query }, keepalive: true })
        .catch(() => undefined);
    let closed = false;
    const made = api.POST('/flows', { params: { query }, body: bodyOf(part) }).then(dataOf<Schemas['Flow']>);
    made
      .then((flow) => cache.fetchQuery(toolQuery(flow.id, teamId)))
      .then((read) => !closed && setTool(read))
      .catch((problem) => !closed && setError(problem));
    const close = () => {
      if (!closed) {
        closed = true;
        void made.then(remove, () => undefined);
      }
    };
    // A page that the browser shows again has no dialog whose flow is gone.
    const leave = () => {
      close();
      closeDialog();
    };
    window.addEventListener('pagehide', leave);

    return () => {
      window.removeEventListener('pagehide', leave);
      close();
    };
  }, [part, teamId, cache]);

  return tool ? (
    <PartForm tool={tool} id={id} onStarted={onStarted} onClose={onClose} />
  ) : (
    <Dialog open onClose={onClose} title={text.runPartTitle(id)}>
      {error === undefined ? (
        <Waiting>
          <Bone height={80} />
        </Waiting>
      ) : (
        <ErrorFault error={error} />
      )}
    </Dialog>
  );
}

function PartForm({ tool, id, onStarted, onClose }: Props & { tool: ToolDetail }) {
  const { teamId } = useAccount();
  const cache = useQueryClient();
  const toast = useToast();
  const [values, setValues] = useState<Values>({});
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [key] = useState(() => crypto.randomUUID());
  const set = (name: string, value: Value | ((before: Value) => Value)) =>
    setValues((before) => ({ ...before, [name]: typeof value === 'function' ? value(before[name]) : value }));
  const uploads = useUploads(teamId, (field, file) => set(field.fieldKey, (before) => addMedia(field, before, file)));
  const problems = checkForm(tool.fields, values);
  const shown = Object.entries(problems).filter(([, problem]) => asked || problem.kind === 'wrong');

  const start = async () => {
    setAsked(true);
    if (Object.keys(problems).length > 0 || uploads.sending.length > 0) {
      return;
    }
    setBusy(true);
    setError(undefined);
    try {
      const body = {
        tool_id: tool.id,
        tool_fields_hash: tool.tool_fields_hash,
        inputs: inputsOf(tool.fields, values),
        plugin: 'studio',
      };
      const params = { query: { team_id: teamId }, header: { 'Idempotency-Key': key } };
      const accepted = dataOf(await api.POST('/generate', { params, body })) as Schemas['GenerationCreated'];
      onStarted(accepted.request_id);
      void cache.invalidateQueries({ queryKey: runsKey(teamId) });
      toast({ text: text.started });
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };

  const actions = (
    <Button kind="main" icon="play" disabled={busy} onClick={() => void start()}>
      {busy ? text.starting : text.start}
      {!busy && <span className="num">· {text.atMost(tool.tokens_per_result)}</span>}
    </Button>
  );
  return (
    <Dialog open onClose={onClose} title={text.runPartTitle(id)} actions={actions}>
      <form
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <p className="small soft">
          {text.runPartLead} {leavesOf(tool.fields).length === 0 && text.noInputs}
        </p>
        <Form
          nodes={tool.fields}
          values={values}
          problems={Object.fromEntries(shown.map(([name, problem]) => [name, problem.message]))}
          uploads={uploads}
          onChange={set}
        />
        {error !== undefined && <ErrorFault error={error} />}
      </form>
    </Dialog>
  );
}
