/** The errors of a body: the first ones are kept, as many as a response shows, and all are counted. */
import { ERRORS_SHOWN_MAX } from "../limits/responses.ts";

/** A FieldError without a guide. */
interface Entry {
  pointer: string;
  detail: string;
}

/** Errors in the order in which a caller reads them. */
export class FirstErrors {
  readonly first: Entry[] = [];
  /** The number of all errors. */
  total = 0;

  add(...errors: readonly Entry[]): void {
    for (const error of errors) {
      if (this.first.length < ERRORS_SHOWN_MAX) this.first.push(error);
      this.total++;
    }
  }

  addAll({ first, total }: FirstErrors): void {
    this.add(...first);
    this.total += total - first.length;
  }

  /** For a ServiceError. */
  get details(): { fields: readonly Entry[]; fieldsTotal: number } {
    return { fields: this.first, fieldsTotal: this.total };
  }
}
