// Package policy holds texts against the operator's content policy.
//
//	texts ──▶ Rules: deny patterns of a file ──▶ Moderator, if any ──▶ allowed
//	              └──────────── refused ◀────────────┘
//
// Rules see every text alone and all of them together, normalised so that the
// usual disguises fall away (see normal.go). They are a net for what is plainly
// forbidden; judgement is the moderator's.
//
// A refusal names the field and nothing else, always in the same words: it must
// not tell which rule to write around. A moderator that does not answer, or not
// as it should, lets nothing through.
package policy

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"atelier/internal/base/fault"
)

// Text is something a person wrote, and where in the request it stands.
type Text struct {
	Path  string // inputs.prompt
	Value string
}

// isBlank tells whether there is nothing to judge.
func (t Text) isBlank() bool { return strings.TrimSpace(t.Value) == "" }

// maxText bounds the texts of a request together, in bytes. Callers have lower
// limits of their own.
const maxText = 1 << 20

// Checker holds texts against the rules and then asks the moderator.
type Checker struct {
	Rules     *Rules     // nil: none
	Moderator *Moderator // nil: none
}

// Check holds texts against the rules, and asks the moderator where there is one.
func (c *Checker) Check(ctx context.Context, texts []Text) error {
	if err := c.CheckRules(texts); err != nil {
		return err
	}
	return c.Moderate(ctx, texts)
}

// CheckRules refuses texts that the rules do not allow with a
// fault.ContentPolicyViolation, whose detail field is the path. It asks nobody.
func (c *Checker) CheckRules(texts []Text) error {
	path, refused := exceedsLimit(texts)
	if !refused {
		path, refused = c.Rules.Match(texts)
	}
	if refused {
		return newViolation(path)
	}
	return nil
}

// Asks tells whether Moderate would ask the moderator about texts.
func (c *Checker) Asks(texts []Text) bool {
	return c.Moderator != nil && slices.ContainsFunc(texts, func(t Text) bool { return !t.isBlank() })
}

// Moderate refuses texts that the moderator does not allow as CheckRules does. It
// is a fault.Unavailable where the moderator cannot be asked.
func (c *Checker) Moderate(ctx context.Context, texts []Text) error {
	if !c.Asks(texts) {
		return nil
	}
	path, refused, err := c.Moderator.askServer(ctx, texts)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("ask the moderator: %w", err) // the caller left
	case err != nil:
		return fault.New(fault.Unavailable, "The service can't check this request right now. Try again shortly.").Because(err)
	case refused:
		return newViolation(path)
	}
	return nil
}

func newViolation(path string) error {
	return fault.New(fault.ContentPolicyViolation, "The content policy does not allow this request.").With("field", path)
}

// exceedsLimit finds the text that goes beyond what can be checked. It counts as
// refused: what nobody has looked at does not pass.
func exceedsLimit(texts []Text) (path string, refused bool) {
	total := 0
	for _, t := range texts {
		if total += len(t.Value); total > maxText {
			return t.Path, true
		}
	}
	return "", false
}

//go:embed default.rules
var defaultRules string

// Default gives the rules that ship with the program.
func Default() *Rules {
	r, err := Parse(strings.NewReader(defaultRules))
	if err != nil {
		panic("policy: the shipped rules: " + err.Error()) // tests read them
	}
	return r
}
