"""Lightning's DDP on two processes: the replicas are equal after training, and were trained by anyccl."""

import lightning
import torch
import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy

import anyccl.torch


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        loss = self.layer(batch).square().mean()
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


lightning.seed_everything(0)
model = Line()
trainer = lightning.Trainer(
    accelerator="cpu", devices=2, strategy=DDPStrategy(process_group_backend="gloo"), max_epochs=2, logger=False,
    enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(model, torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=8))
assert isinstance(dist.group.WORLD._get_backend(torch.device("cpu")), anyccl.torch.ProcessGroupAnyccl)
everyones = [torch.empty_like(model.layer.weight) for _ in range(2)]
dist.all_gather(everyones, model.layer.weight.detach())
assert everyones[0].equal(everyones[1])
