package openai

import "context"

// speech speaks a text. The answer is the sound itself.
func (t *task) speech(ctx context.Context) error {
	for i := range t.NumResults {
		res, err := t.postJSON(ctx, "audio/speech", t.parameters(i, 0))
		if err != nil {
			return meaning(ctx, err)
		}
		err = t.deliverBody(ctx, res)
		res.Body.Close()
		if err != nil {
			return err
		}
		t.done(i + 1)
	}
	return nil
}
