package conformance

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

// The typed client, with JSON and with protobuf.
func TestTypedObjectsInJSONAndProtobuf(t *testing.T) {
	at := start(t)
	for _, media := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		config := rest.CopyConfig(at.config)
		config.ContentType = media
		config.AcceptContentTypes = media + ",application/json"
		client, err := kubernetes.NewForConfig(config)
		check(t, err)
		maps := client.CoreV1().ConfigMaps(at.namespace)
		name := "m" + random()
		made, err := maps.Create(at.ctx, configMap(name), metav1.CreateOptions{})
		check(t, err)
		require(t, made.UID != "" && made.Data["key"] == "value", "%s: %v", media, made)
		_, err = maps.Create(at.ctx, configMap(name), metav1.CreateOptions{})
		require(t, errors.IsAlreadyExists(err), "%s: %v", media, err)
		made.Data["other"] = "x"
		changed, err := maps.Update(at.ctx, made, metav1.UpdateOptions{})
		check(t, err)
		require(t, changed.ResourceVersion != made.ResourceVersion, "%s: %v", media, changed)
		_, err = maps.Update(at.ctx, made, metav1.UpdateOptions{})
		require(t, errors.IsConflict(err), "%s: %v", media, err)
		_, err = maps.Get(at.ctx, "none", metav1.GetOptions{})
		require(t, errors.IsNotFound(err), "%s: %v", media, err)
		bad := configMap("Bad_Name")
		_, err = maps.Create(at.ctx, bad, metav1.CreateOptions{})
		require(t, errors.IsInvalid(err), "%s: %v", media, err)
		none := types.UID("none")
		err = maps.Delete(at.ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &none}})
		require(t, errors.IsConflict(err), "%s: %v", media, err)
		check(t, maps.Delete(at.ctx, name, metav1.DeleteOptions{}))
	}
}

func TestPatchesOfAllKinds(t *testing.T) {
	at := start(t)
	maps := at.client.CoreV1().ConfigMaps(at.namespace)
	_, err := maps.Create(at.ctx, configMap("a"), metav1.CreateOptions{})
	check(t, err)
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"add","path":"/data/json","value":"1"}]`,
		types.MergePatchType:          `{"data":{"merge":"2"}}`,
		types.StrategicMergePatchType: `{"data":{"strategic":"3"}}`,
	} {
		_, err := maps.Patch(at.ctx, "a", kind, []byte(patch), metav1.PatchOptions{})
		check(t, err)
	}
	apply := applycore.ConfigMap("a", at.namespace).
		WithLabels(map[string]string{"by": "conformance"}).
		WithData(map[string]string{"apply": "4"})
	applied, err := maps.Apply(at.ctx, apply, metav1.ApplyOptions{FieldManager: "conformance"})
	check(t, err)
	for _, key := range []string{"key", "json", "merge", "strategic", "apply"} {
		require(t, applied.Data[key] != "", "%s is missing: %v", key, applied.Data)
	}
	// The applied fields are extracted, changed and applied again: omitted fields are removed.
	extracted, err := applycore.ExtractConfigMap(applied, "conformance")
	check(t, err)
	require(t, len(extracted.Data) == 1, "%v", extracted.Data)
	extracted.Data = map[string]string{"more": "5"}
	applied, err = maps.Apply(at.ctx, extracted, metav1.ApplyOptions{FieldManager: "conformance"})
	check(t, err)
	require(t, applied.Data["apply"] == "" && applied.Data["more"] == "5", "%v", applied.Data)
	conflict := applycore.ConfigMap("a", at.namespace).WithData(map[string]string{"more": "6"})
	_, err = maps.Apply(at.ctx, conflict, metav1.ApplyOptions{FieldManager: "other"})
	require(t, errors.IsConflict(err), "%v", err)
	_, err = maps.Apply(at.ctx, conflict, metav1.ApplyOptions{FieldManager: "other", Force: true})
	check(t, err)
}

func TestConcurrentUpdatesAreRetried(t *testing.T) {
	at := start(t)
	maps := at.client.CoreV1().ConfigMaps(at.namespace)
	_, err := maps.Create(at.ctx, configMap("a"), metav1.CreateOptions{})
	check(t, err)
	const writers = 5
	done := make(chan error, writers)
	for writer := range writers {
		go func() {
			done <- retry.RetryOnConflict(retry.DefaultRetry, func() error {
				found, err := maps.Get(at.ctx, "a", metav1.GetOptions{})
				if err != nil {
					return err
				}
				found.Data[fmt.Sprint("writer", writer)] = "x"
				_, err = maps.Update(at.ctx, found, metav1.UpdateOptions{})
				return err
			})
		}()
	}
	for range writers {
		check(t, <-done)
	}
	found, err := maps.Get(at.ctx, "a", metav1.GetOptions{})
	check(t, err)
	require(t, len(found.Data) == writers+1, "%v", found.Data)
}

func TestListsInPagesAndTheWatchThatFollows(t *testing.T) {
	at := start(t)
	maps := at.client.CoreV1().ConfigMaps(at.namespace)
	for number := range 25 {
		_, err := maps.Create(at.ctx, configMap(fmt.Sprintf("m%02d", number)), metav1.CreateOptions{})
		check(t, err)
	}
	pages := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return maps.List(at.ctx, options)
	}))
	pages.PageSize = 7
	seen := 0
	check(t, pages.EachListItem(at.ctx, metav1.ListOptions{LabelSelector: "app=a"}, func(runtime.Object) error {
		seen++
		return nil
	}))
	require(t, seen == 25, "%d items", seen)
	list, err := maps.List(at.ctx, metav1.ListOptions{})
	check(t, err)
	events, err := maps.Watch(at.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
	check(t, err)
	defer events.Stop()
	check(t, maps.DeleteCollection(at.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=a"}))
	for deleted := 0; deleted < 25; {
		event, open := <-events.ResultChan()
		require(t, open, "the watch ended after %d", deleted)
		require(t, event.Type != watch.Error, "%v", event)
		if event.Type == watch.Deleted {
			deleted++
		}
	}
}

func TestStatusScaleBindingAndEviction(t *testing.T) {
	at := start(t)
	labels := map[string]string{"app": "x"}
	replicas := int32(2)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	deployments := at.client.AppsV1().Deployments(at.namespace)
	paused, err := deployments.Create(at.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Paused: true,
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
		},
	}, metav1.CreateOptions{})
	check(t, err)
	require(t, paused.Generation == 1, "%v", paused.Generation)
	scale, err := deployments.UpdateScale(at.ctx, "d", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: at.namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: 0},
	}, metav1.UpdateOptions{})
	check(t, err)
	require(t, scale.Spec.Replicas == 0 && scale.Status.Selector == "app=x", "%v", scale)

	pods := at.client.CoreV1().Pods(at.namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: labels}, Spec: template.Spec}
	pod.Spec.SchedulerName = "none"
	made, err := pods.Create(at.ctx, pod, metav1.CreateOptions{})
	check(t, err)
	made.Status.Phase = corev1.PodRunning
	made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	changed, err := pods.UpdateStatus(at.ctx, made, metav1.UpdateOptions{})
	check(t, err)
	require(t, changed.Status.Phase == corev1.PodRunning, "%v", changed.Status)
	check(t, pods.EvictV1(at.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: at.namespace}}))
	eventually(t, "the evicted pod is deleted", func() bool {
		_, err := pods.Get(at.ctx, "p", metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
}
