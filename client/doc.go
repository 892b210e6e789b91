// Package client calls an Atelier service: it lists tools, starts runs, waits
// for them, moves files in both directions and verifies webhooks. It uses only
// the standard library.
//
//	c, err := client.New(client.Options{URL: "https://atelier.example", Token: token})
//	run, err := c.Runs.Create(ctx, client.RunRequest{
//		Tool:   "gradient",
//		Inputs: map[string]any{"seed": 7},
//	})
//	run, err = run.Wait(ctx, client.Watch{})
//	err = c.Download(ctx, run.Outputs[0].File(), "gradient.png", nil)
//
// # Calls
//
// Client has a group of calls for each part of the API: c.Tools, c.Runs,
// c.Library, c.Uploads and so on. They are generated from the OpenAPI document
// (types.gen.go, calls.gen.go). Lists have two methods: List returns one page,
// All iterates over the items of all pages.
//
// # Failures
//
// A call repeats its request after a lost connection, after 408, 429 and 503,
// and after other 5xx if that is safe: requests that read, replace or delete,
// and creates with an idempotency key. Runs.Create always sends a key, so that
// it starts one run, however often the request was sent. RetryPolicy limits the
// attempts and the time; the context ends every wait. A request that was refused
// returns an *Error with a Code.
package client
