package e2e

import (
	"bytes"
	"context"
	"testing"

	"atelier/client"
)

// connect returns a client of the service with an access token.
func connect(t testing.TB, url, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: url, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// listTools lists the tools of the account, without their forms.
func listTools(t testing.TB, c *client.Client) []client.Tool {
	t.Helper()
	var all []client.Tool
	for tool, err := range c.Tools.All(t.Context(), client.ToolsListParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tool)
	}
	return all
}

// startRun starts a run of a tool whose form was read before.
func startRun(ctx context.Context, c *client.Client, tool *client.ToolDetail, results int, inputs map[string]any) (*client.Run, error) {
	return c.Runs.Create(ctx, client.RunRequest{
		Tool:       tool.ID,
		FieldsHash: tool.ToolFieldsHash,
		Results:    int64(results),
		Inputs:     inputs,
	})
}

// readOutput downloads a result.
func readOutput(ctx context.Context, c *client.Client, o client.Output) ([]byte, error) {
	var b bytes.Buffer
	err := c.Media.Fetch(ctx, o.File(), &b, nil)
	return b.Bytes(), err
}

// watchFraction is a watch that gets the known fractions of the progress.
func watchFraction(each func(float64)) client.Watch {
	return client.Watch{Progress: func(p client.RunProgress) {
		if p.Progress != nil {
			each(*p.Progress)
		}
	}}
}
