import { type ComponentProps, type CSSProperties, type ReactNode, useEffect, useId, useRef } from 'react';
import { IconButton } from './Button';
import { classes } from './classes';
import styles from './Field.module.css';
import { Icon } from './Icon';

type FieldProps = {
  label: ReactNode;
  /** A short remark at the right of the label, such as a count. */
  note?: ReactNode;
  help?: string;
  problem?: string;
  /** A group of several inputs gets a fieldset with a legend; one input gets a label. */
  group?: boolean;
  children: (attributes: FieldAttributes) => ReactNode;
};

/** FieldAttributes connect an input with its label, help and problem. */
export type FieldAttributes = {
  id: string;
  'aria-describedby'?: string;
  'aria-invalid'?: true;
};

/** Field frames an input with its label, help, and the reason why its value is refused. */
export function Field({ label, note, help, problem, group, children }: FieldProps) {
  const id = useId();
  const described = [problem && `${id}-problem`, help && `${id}-help`].filter(Boolean).join(' ');
  const attributes: FieldAttributes = {
    id,
    'aria-describedby': described || undefined,
    'aria-invalid': problem ? true : undefined,
  };
  const notes = (
    <>
      {problem && (
        <p id={`${id}-problem`} className={styles.problem}>
          <Icon name="alert" small />
          {problem}
        </p>
      )}
      {help && (
        <p id={`${id}-help`} className="small soft">
          {help}
        </p>
      )}
    </>
  );

  if (group) {
    return (
      <fieldset className={styles.field} id={id} aria-describedby={attributes['aria-describedby']}>
        <legend className={styles.label}>
          {label} {note && <span className="small soft num">{note}</span>}
        </legend>
        {children(attributes)}
        {notes}
      </fieldset>
    );
  }
  return (
    <div className={styles.field}>
      <div className={styles.label}>
        <label htmlFor={id}>{label}</label>
        {note && <span className="small soft num">{note}</span>}
      </div>
      {children(attributes)}
      {notes}
    </div>
  );
}

/** TextInput is an input of one line. */
export function TextInput({ className, ...rest }: ComponentProps<'input'>) {
  return <input type="text" className={classes(styles.input, className)} {...rest} />;
}

/** SearchInput is an input with a magnifying glass. */
export function SearchInput({ className, label, ...rest }: ComponentProps<'input'> & { label: string }) {
  return (
    <span className={classes(styles.search, className)}>
      <Icon name="search" small />
      <input type="search" aria-label={label} placeholder={label} {...rest} />
    </span>
  );
}

/** TextArea is an input of several lines that grows with its text. */
export function TextArea({ className, value, ...rest }: ComponentProps<'textarea'>) {
  const area = useRef<HTMLTextAreaElement>(null);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text.
  useEffect(() => {
    const element = area.current;
    if (element) {
      element.style.height = 'auto';
      element.style.height = `${Math.min(element.scrollHeight + 2, 320)}px`;
    }
  }, [value]);

  return <textarea ref={area} className={classes(styles.input, styles.area, className)} value={value} {...rest} />;
}

/** Select is the browser's own list of options. */
export function Select({ className, children, ...rest }: ComponentProps<'select'>) {
  return (
    <span className={classes(styles.select, className)}>
      <select className={styles.input} {...rest}>
        {children}
      </select>
      <Icon name="chevronDown" small />
    </span>
  );
}

type SwitchProps = Omit<ComponentProps<'input'>, 'type'> & { label: ReactNode; help?: string };

/** Switch is a choice between yes and no. */
export function Switch({ label, help, ...rest }: SwitchProps) {
  const id = useId();

  return (
    <div className={styles.field}>
      <label className={styles.switch}>
        {/* biome-ignore lint/a11y/useAriaPropsForRole: a checkbox says itself whether it is checked. */}
        <input type="checkbox" role="switch" aria-describedby={help ? id : undefined} {...rest} />
        <span className={styles.knob} aria-hidden="true" />
        <span>{label}</span>
      </label>
      {help && (
        <p id={id} className="small soft">
          {help}
        </p>
      )}
    </div>
  );
}

type SliderProps = {
  label: string;
  value: number | undefined;
  min: number;
  max: number;
  step: number | 'any';
  onChange: (value: number | undefined) => void;
} & Partial<FieldAttributes>;

/** Slider is a range with a number beside it, for the same value. */
export function Slider({ label, value, min, max, step, onChange, ...attributes }: SliderProps) {
  const slideStep = step === 'any' ? (max - min) / 100 : step;
  const filled = ((Math.min(Math.max(value ?? min, min), max) - min) / (max - min || 1)) * 100;

  return (
    <div className={styles.slider}>
      <input
        type="range"
        aria-label={`${label}, slider`}
        min={min}
        max={max}
        step={slideStep}
        value={value ?? min}
        style={{ '--filled': `${filled}%` } as CSSProperties}
        onChange={(event) => onChange(Number(event.target.value))}
      />
      <NumberInput value={value} min={min} max={max} step={step} onChange={onChange} {...attributes} />
    </div>
  );
}

type NumberInputProps = {
  value: number | undefined;
  onChange: (value: number | undefined) => void;
} & Omit<ComponentProps<'input'>, 'value' | 'onChange'>;

/** NumberInput is an input for a number; an empty input has no value. */
export function NumberInput({ value, onChange, className, ...rest }: NumberInputProps) {
  return (
    <input
      type="number"
      inputMode="decimal"
      className={classes(styles.input, styles.number, className)}
      value={value ?? ''}
      onChange={(event) => onChange(event.target.value === '' ? undefined : Number(event.target.value))}
      {...rest}
    />
  );
}

type StepperProps = { label: string; value: number; min: number; max: number; onChange: (value: number) => void };

/** Stepper counts a small whole number up and down. */
export function Stepper({ label, value, min, max, onChange }: StepperProps) {
  return (
    <div role="group" aria-label={label} className={styles.stepper}>
      <IconButton icon="minus" label="Fewer" disabled={value <= min} onClick={() => onChange(value - 1)} />
      <output className="num">{value}</output>
      <IconButton icon="plus" label="More" disabled={value >= max} onClick={() => onChange(value + 1)} />
    </div>
  );
}
