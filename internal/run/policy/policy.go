// Package policy checks texts against the content policy of the operator.
//
//	texts ──▶ Rules: deny patterns of a file ──▶ Moderator, if any ──▶ allowed
//	              └──────────── refused ◀────────────┘
//
// Rules are applied to every text separately and to all texts together. Texts
// are normalized first, which removes the usual disguises (see normalize.go).
// Rules reject texts that are clearly forbidden. The moderator checks the texts
// that the rules allow.
//
// The error for a rejected text names only the field, always with the same
// message, so that it does not reveal which rule to avoid. If the moderator
// does not respond, or its response is invalid, the request is rejected.
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
	Path  string // for example inputs.prompt
	Value string
}

// isBlank reports whether the text consists only of white space.
func (t Text) isBlank() bool { return strings.TrimSpace(t.Value) == "" }

// maxText is the maximum total size of the texts of a request, in bytes. The
// limits of the API are lower.
const maxText = 1 << 20

// Checker checks texts against the rules and then with the moderator.
type Checker struct {
	Rules     *Rules     // nil if there are no rules
	Moderator *Moderator // nil if there is no moderator
}

// CheckRules returns a fault.ContentPolicyViolation for texts that the rules
// forbid. The error's detail "field" is the path of the text. CheckRules does
// not call the moderator.
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

// ModerateTexts returns a fault.ContentPolicyViolation for texts that the
// moderator forbids, and a fault.Unavailable if the moderator cannot be
// reached.
func (c *Checker) ModerateTexts(ctx context.Context, texts []Text) error {
	if !c.NeedsModeration(texts) {
		return nil
	}
	path, refused, err := c.Moderator.askServer(ctx, texts)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("send texts to the moderator: %w", err) // the client has disconnected
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

// exceedsLimit reports whether the total size of the texts exceeds maxText, and
// returns the path of the first text beyond the limit. Such texts are rejected,
// because they are too large to check.
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
		panic("policy: parse the built-in rules: " + err.Error()) // cannot happen, because tests parse the built-in rules
	}
	return r
}
