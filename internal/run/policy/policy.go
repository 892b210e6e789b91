// Package policy checks texts against the content policy of the operator.
//
//	texts ──▶ Rules: deny patterns of a file ──▶ Moderator, if any ──▶ allowed
//	              └──────────── refused ◀────────────┘
//
// Rules are applied to every text by itself and to all texts together,
// normalized so that the usual disguises are removed (see normalize.go). They
// refuse plainly forbidden texts; the moderator judges the rest.
//
// A refusal names the field and nothing else, always in the same words, so that
// it does not reveal which rule to avoid. If a moderator does not answer, or
// its answer is invalid, the request is refused.
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

// Text is a text that a person wrote, and its path in the request.
type Text struct {
	Path  string // inputs.prompt
	Value string
}

// isBlank reports whether the text has nothing to judge.
func (t Text) isBlank() bool { return strings.TrimSpace(t.Value) == "" }

// maxText is the maximum size in bytes of all texts of a request together.
// Callers have lower limits.
const maxText = 1 << 20

// Checker checks texts against the rules and then with the moderator.
type Checker struct {
	Rules     *Rules     // nil: none
	Moderator *Moderator // nil: none
}

// Check checks texts against the rules, and with the moderator if there is one.
func (c *Checker) Check(ctx context.Context, texts []Text) error {
	if err := c.CheckRules(texts); err != nil {
		return err
	}
	return c.ModerateTexts(ctx, texts)
}

// CheckRules refuses texts that the rules do not allow with a
// fault.ContentPolicyViolation, whose detail field is the path. It does not
// call the moderator.
func (c *Checker) CheckRules(texts []Text) error {
	path, refused := exceedsLimit(texts)
	if !refused {
		path, refused = c.Rules.FindViolation(texts)
	}
	if refused {
		return newViolation(path)
	}
	return nil
}

// NeedsModeration reports whether ModerateTexts would call the moderator.
func (c *Checker) NeedsModeration(texts []Text) bool {
	return c.Moderator != nil && slices.ContainsFunc(texts, func(t Text) bool { return !t.isBlank() })
}

// ModerateTexts refuses texts that the moderator does not allow, as CheckRules
// does. It returns a fault.Unavailable if the moderator cannot be reached.
func (c *Checker) ModerateTexts(ctx context.Context, texts []Text) error {
	if !c.NeedsModeration(texts) {
		return nil
	}
	path, refused, err := c.Moderator.askServer(ctx, texts)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("ask the moderator: %w", err) // the caller disconnected
	case err != nil:
		return fault.New(fault.Unavailable, "The service cannot check this request right now. Try again shortly.").Because(err)
	case refused:
		return newViolation(path)
	}
	return nil
}

func newViolation(path string) error {
	return fault.New(fault.ContentPolicyViolation, "The content policy does not allow this request.").With("field", path)
}

// exceedsLimit returns the text that exceeds the size that can be checked. It
// counts as refused: a text that was not checked does not pass.
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

// Default returns the built-in rules.
func Default() *Rules {
	r, err := Parse(strings.NewReader(defaultRules))
	if err != nil {
		panic("policy: the shipped rules: " + err.Error()) // tests read them
	}
	return r
}
