// Command driver does the work of a person's program with the Go client, while
// the connection and the service fail: it uploads a file, starts runs, waits
// for them and downloads their results. TestFaults starts it and judges what it
// printed.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"atelier/client"
)

func main() {
	if err := runDriver(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

// atOnce is the number of runs in progress.
const atOnce = 8

func runDriver(ctx context.Context) error {
	creates, err := strconv.Atoi(os.Getenv("ATELIER_CREATES"))
	if err != nil {
		return fmt.Errorf("ATELIER_CREATES: %w", err)
	}
	c, err := client.New(client.Options{
		URL:   os.Getenv("ATELIER_URL"),
		Store: client.NewFileStore(os.Getenv("ATELIER_TOKENS")),
		Retry: client.RetryPolicy{
			Attempts: 20,
			OnRetry:  func(err error, wait time.Duration) { fmt.Fprintf(os.Stderr, "again in %v: %v\n", wait, err) },
		},
	})
	if err != nil {
		return err
	}
	if _, err := c.Uploads.CreateFromPath(ctx, os.Getenv("ATELIER_FILE"), nil); err != nil {
		return err
	}

	indexes := make(chan int)
	var failures []error
	var mu sync.Mutex
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for index := range indexes {
				err := makeRun(ctx, c, index, &mu)
				if err != nil {
					mu.Lock()
					failures = append(failures, fmt.Errorf("run %d: %w", index, err))
					mu.Unlock()
				}
			}
		})
	}
	for index := range creates {
		indexes <- index
	}
	close(indexes)
	group.Wait()
	return errors.Join(failures...)
}

// makeRun makes one run and prints its line.
func makeRun(ctx context.Context, c *client.Client, index int, printing *sync.Mutex) error {
	request := client.RunRequest{
		Tool:   "gradient",
		Inputs: map[string]any{"seed": index, "size": client.SizeInput{Width: 256, Height: 256}},
	}
	if index%20 == 19 {
		picture, err := c.Uploads.CreateFromPath(ctx, os.Getenv("ATELIER_FILE_SMALL"), nil)
		if err != nil {
			return err
		}
		request = client.RunRequest{
			Tool: "resize",
			Inputs: map[string]any{
				"picture": client.UploadInput(picture.ID),
				"size":    client.SizeInput{Width: 32, Height: 32},
			},
		}
	}
	run, err := c.Runs.Create(ctx, request)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	run, err = run.Wait(ctx, client.Watch{})
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	if err := run.Err(); err != nil {
		return err
	}

	type savedFile struct {
		Path   string `json:"path"`
		SHA256 string `json:"sha256"`
	}
	line := struct {
		Index     int         `json:"index"`
		RequestID string      `json:"request_id"`
		Files     []savedFile `json:"files"`
	}{Index: index, RequestID: run.RequestID}
	for i, output := range run.Outputs {
		path := filepath.Join(os.Getenv("ATELIER_OUT"), fmt.Sprintf("%d-%d", index, i))
		if err := c.Download(ctx, output.File(), path, nil); err != nil {
			return fmt.Errorf("download: %w", err)
		}
		digest, err := hashFile(path)
		if err != nil {
			return err
		}
		line.Files = append(line.Files, savedFile{path, digest})
	}
	printing.Lock()
	defer printing.Unlock()
	return json.NewEncoder(os.Stdout).Encode(line)
}

// hashFile returns the SHA-256 of a file on the disk.
func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}
