"""The Trainer of transformers on two processes, with a model of some thousand parameters."""

import tempfile

import torch
import torch.distributed as dist
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import anyccl.torch


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        return {"input_ids": torch.arange(8) % 30, "attention_mask": torch.ones(8, dtype=torch.long), "labels": i % 2}


model = BertForSequenceClassification(BertConfig(
    vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=2))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, use_cpu=True, ddp_backend="gloo", max_steps=4, per_device_train_batch_size=4, report_to=[],
        save_strategy="no", disable_tqdm=True)
    trainer = Trainer(model=model, args=arguments, train_dataset=Sentences(), eval_dataset=Sentences())
    trainer.train()
    assert "eval_loss" in trainer.evaluate()
assert isinstance(dist.group.WORLD._get_backend(torch.device("cpu")), anyccl.torch.ProcessGroupAnyccl)
everyones = [torch.empty_like(model.classifier.weight) for _ in range(dist.get_world_size())]
dist.all_gather(everyones, model.classifier.weight.detach())
assert all(each.equal(everyones[0]) for each in everyones)
dist.destroy_process_group()
