// Command go runs two tools with the client that oapi-codegen made, in
// client.gen.go: go URL TOKEN.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net/http"
	"os"
	"time"
)

type walk struct {
	client *ClientWithResponses
}

func main() {
	log.SetFlags(0)
	if err := start(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func start(ctx context.Context, url, token string) error {
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	client, err := NewClientWithResponses(url+"/api/v2", WithRequestEditorFn(authorize))
	if err != nil {
		return err
	}
	w := walk{client}

	gradient, err := w.run(ctx, "Gradient", map[string]func(*InputValue) error{
		"style": func(v *InputValue) error { return v.FromTextInput("radial") },
		"size":  func(v *InputValue) error { return v.FromSizeInput(SizeInput{Width: 64, Height: 48}) },
	})
	if err != nil {
		return err
	}
	picture, err := download(gradient)
	if err != nil {
		return err
	}

	upload, err := w.upload(ctx, picture)
	if err != nil {
		return err
	}
	small, err := w.run(ctx, "Resize", map[string]func(*InputValue) error{
		"picture": func(v *InputValue) error {
			var file FileInput
			if err := file.FromUploadRef(UploadRef{Id: upload.Id}); err != nil {
				return err
			}
			return v.FromFileInput(file)
		},
		"size": func(v *InputValue) error { return v.FromSizeInput(SizeInput{Width: 32, Height: 24}) },
	})
	if err != nil {
		return err
	}
	if _, err := download(small); err != nil {
		return err
	}
	if width := small.Outputs[0].Width; width == nil || *width != 32 {
		return fmt.Errorf("the picture is not resized")
	}

	missing, err := client.GetGenerationWithResponse(ctx, "00000000-0000-4000-8000-000000000000", nil)
	if err != nil {
		return err
	}
	if missing.JSON404 == nil || missing.JSON404.Error.Code != ErrorCodeNOTFOUND {
		return fmt.Errorf("a run that is not there: %s %s", missing.Status(), missing.Body)
	}
	return nil
}

// run runs a tool to its end.
func (w walk) run(ctx context.Context, name string, values map[string]func(*InputValue) error) (*Generation, error) {
	tools, err := w.client.ListToolsWithResponse(ctx, &ListToolsParams{})
	if err != nil {
		return nil, err
	}
	if tools.JSON200 == nil {
		return nil, fmt.Errorf("list tools: %s %s", tools.Status(), tools.Body)
	}
	var id ID
	for _, t := range tools.JSON200.Data {
		if t.Name == name {
			id = t.Id
		}
	}
	detail, err := w.client.GetToolWithResponse(ctx, id, &GetToolParams{})
	if err != nil {
		return nil, err
	}
	if detail.JSON200 == nil {
		return nil, fmt.Errorf("get tool: %s %s", detail.Status(), detail.Body)
	}

	inputs := Inputs{}
	for key, set := range values {
		inputs[key] = &InputValue{}
		if err := set(inputs[key]); err != nil {
			return nil, err
		}
	}
	idempotencyKey := rand.Text()
	created, err := w.client.CreateGenerationWithResponse(ctx, &CreateGenerationParams{IdempotencyKey: &idempotencyKey}, CreateGenerationRequest{
		ToolId:         id,
		ToolFieldsHash: detail.JSON200.ToolFieldsHash,
		Inputs:         &inputs,
	})
	if err != nil {
		return nil, err
	}
	if created.JSON202 == nil {
		return nil, fmt.Errorf("create: %s %s", created.Status(), created.Body)
	}

	wait := created.JSON202.RetryAfterSeconds
	for {
		time.Sleep(time.Duration(wait) * time.Second)
		record, err := w.client.GetGenerationWithResponse(ctx, created.JSON202.RequestId, &GetGenerationParams{})
		if err != nil {
			return nil, err
		}
		if record.JSON200 == nil {
			return nil, fmt.Errorf("poll: %s %s", record.Status(), record.Body)
		}
		if record.JSON200.Status != GenerationStatusPending {
			return record.JSON200, nil
		}
		wait = record.JSON200.RetryAfterSeconds
	}
}

// download fetches the first result of a run and checks that it is whole.
func download(record *Generation) ([]byte, error) {
	if record.Status != GenerationStatusSucceeded || len(record.Outputs) == 0 || record.Outputs[0].Url == nil {
		return nil, fmt.Errorf("the run has no result: %+v", record)
	}
	output := record.Outputs[0]
	answer, err := http.Get(*output.Url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != output.Sha256 {
		return nil, fmt.Errorf("the file is not what the record says")
	}
	return content, nil
}

// upload sends a file as a form.
func (w walk) upload(ctx context.Context, content []byte) (*Upload, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "gradient.png")
	if err != nil {
		return nil, err
	}
	part.Write(content)
	if err := form.Close(); err != nil {
		return nil, err
	}

	answer, err := w.client.CreateUploadWithBodyWithResponse(ctx, &CreateUploadParams{}, form.FormDataContentType(), &body)
	if err != nil {
		return nil, err
	}
	if answer.JSON201 == nil {
		return nil, fmt.Errorf("upload: %s %s", answer.Status(), answer.Body)
	}
	return answer.JSON201, nil
}
