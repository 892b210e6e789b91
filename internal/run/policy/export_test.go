package policy

import "context"

// Check checks texts against the rules, and then with the moderator.
func (c *Checker) Check(ctx context.Context, texts []Text) error {
	if err := c.CheckRules(texts); err != nil {
		return err
	}
	return c.ModerateTexts(ctx, texts)
}
