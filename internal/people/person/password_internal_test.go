package person

import (
	"context"
	"errors"
	"testing"
)

func TestWhoGoesAwayDoesNotWaitForHashing(t *testing.T) {
	t.Parallel()
	for range cap(hashing) { // all places are taken
		hashing <- struct{}{}
		defer func() { <-hashing }()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := HashPassword(ctx, "correct horse"); !errors.Is(err, context.Canceled) {
		t.Errorf("hash = %v, want %v", err, context.Canceled)
	}
	if ok, err := CheckPassword(ctx, noPassword, "correct horse"); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("check = %v, %v, want %v", ok, err, context.Canceled)
	}
}
