/** The texts that were asked for last, bounded by their number and by their characters together. */
export class KeptTexts {
  private readonly most: { texts: number; characters: number };
  private readonly kept = new Map<string, string | undefined>();
  private characters = 0;

  constructor(most: { texts: number; characters: number }) {
    this.most = most;
  }

  has(id: string): boolean {
    return this.kept.has(id);
  }

  get(id: string): string | undefined {
    return this.kept.get(id);
  }

  keep(id: string, text: string | undefined): void {
    this.forget(id);
    this.kept.set(id, text);
    this.characters += sizeOf(id, text);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= this.most.texts && this.characters <= this.most.characters) return;
      this.forget(oldest);
    }
  }

  private forget(id: string): void {
    if (!this.kept.has(id)) return;
    this.characters -= sizeOf(id, this.kept.get(id));
    this.kept.delete(id);
  }
}

function sizeOf(id: string, text = ""): number {
  return id.length + text.length;
}
