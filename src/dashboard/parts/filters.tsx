/** Fields that narrow a list. Their values are in the address. */
import { useEffect, useState } from "preact/hooks";

const TYPED_MS = 200;

interface SearchProps {
  label: string;
  value: string;
  onChange: (text: string) => void;
  placeholder?: string;
}

/** Changes once the person pauses typing. */
export function Search({ label, value, onChange, placeholder }: SearchProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onChange(text), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label class="field">
      {label}
      <input
        type="search"
        value={text}
        placeholder={placeholder}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </label>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly (readonly [value: string, text: string])[];
  onChange: (value: string) => void;
}

export function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <label class="field">
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
