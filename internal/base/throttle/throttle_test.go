package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"atelier/internal/base/throttle"
)

func TestTake(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)
	b := throttle.New(60, func() time.Time { return now })
	for i := range 60 {
		if _, ok := b.Take("anna"); !ok {
			t.Fatalf("call %d was refused", i)
		}
	}
	wait, ok := b.Take("anna")
	if ok || wait <= 0 || wait > time.Second {
		t.Errorf("61st call = %v, %v, want refused for up to a second", wait, ok)
	}
	if _, ok := b.Take("bert"); !ok {
		t.Error("one caller's calls count against another")
	}
	now = now.Add(wait)
	if _, ok := b.Take("anna"); !ok {
		t.Error("refused after waiting as told")
	}
	now = now.Add(3 * time.Minute)
	for i := range 60 {
		if _, ok := b.Take("anna"); !ok {
			t.Fatalf("call %d after a rest was refused", i)
		}
	}
	if _, ok := b.Take("anna"); ok {
		t.Error("a rest gave more than a full bucket")
	}
}

func TestOffAllowsAll(t *testing.T) {
	t.Parallel()
	b := throttle.New(0, time.Now)
	for range 1000 {
		if _, ok := b.Take("x"); !ok {
			t.Fatal("refused")
		}
	}
}

func TestForgottenBucketsAreStillFair(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)
	b := throttle.New(60, func() time.Time { return now })
	allowed := 0
	for range 600 { // two minutes, five calls a second, through every turn of the maps
		if _, ok := b.Take("anna"); ok {
			allowed++
		}
		b.Take(fmt.Sprint(now.UnixNano())) // somebody new each time
		now = now.Add(200 * time.Millisecond)
	}
	if allowed > 60+120 {
		t.Errorf("%d calls in two minutes, want at most 180", allowed)
	}
}
