package conformance

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Only one of two candidates leads at a time; the other takes over after a release.
func TestLeaderElection(t *testing.T) {
	at := start(t)
	var leaders, most atomic.Int32
	candidate := func(name string, ctx context.Context, began chan<- string) {
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "lead", Namespace: at.namespace},
			Client:     at.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					now := leaders.Add(1)
					if now > most.Load() {
						most.Store(now)
					}
					began <- name
					<-ctx.Done()
					leaders.Add(-1)
				},
				OnStoppedLeading: func() {},
			},
		})
	}
	began := make(chan string, 4)
	first, end := context.WithCancel(at.ctx)
	go candidate("a", first, began)
	require(t, <-began == "a", "another one leads")
	second, endSecond := context.WithCancel(at.ctx)
	defer endSecond()
	go candidate("b", second, began)
	time.Sleep(time.Second)
	require(t, len(began) == 0, "two lead")
	end()
	select {
	case name := <-began:
		require(t, name == "b", "%s leads", name)
	case <-time.After(timeout):
		t.Fatal("the second candidate does not take over")
	}
	require(t, most.Load() == 1, "%d led at once", most.Load())
	lease, err := at.client.CoordinationV1().Leases(at.namespace).Get(at.ctx, "lead", metav1.GetOptions{})
	check(t, err)
	require(t, *lease.Spec.LeaseTransitions >= 1 && *lease.Spec.HolderIdentity == "b", "%v", lease.Spec)
}
