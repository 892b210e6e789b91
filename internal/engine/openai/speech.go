package openai

import "context"

// makeSpeech converts a prompt to speech. The body of each response is the
// audio file.
func (t *task) makeSpeech(ctx context.Context) error {
	for i := range t.NumResults {
		res, err := t.postJSON(ctx, "audio/speech", t.requestParameters(i, 0))
		if err != nil {
			return postFailure(ctx, err)
		}
		err = t.deliverBody(ctx, res)
		res.Body.Close()
		if err != nil {
			return err
		}
		t.reportDone(i + 1)
	}
	return nil
}
