"""SampleCallback with a model that is divided among processes by FSDP2 or ZeRO-3, beside DistributedDataParallel."""
import json, os, sys, torch
from pathlib import Path
import text_metrics
from transformers import Trainer, TrainingArguments, DataCollatorForLanguageModeling
from tests.trainer_run import build_causal, build_tokenizer
kind, out = sys.argv[1], Path(sys.argv[2])
cpu = "--cpu" in sys.argv
PROMPTS = ["what sleeps in the house", "what runs", "what do you boil tea with", "the sea", "a man sees"]
tokenizer = build_tokenizer()
more = {}
if kind == "zero3":
    more["deepspeed"] = {"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 0, "stage3_max_live_parameters": 0},
        "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False, "train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto", "gradient_accumulation_steps": "auto"}
if kind.startswith("fsdp"):
    more["fsdp"] = "full_shard auto_wrap"
    more["fsdp_config"] = {"version": 2 if kind == "fsdp2" else 1, "transformer_layer_cls_to_wrap": ["GPT2Block"]}
if cpu: more |= {"use_cpu": True, "ddp_backend": "gloo", "dataloader_pin_memory": False}
args = TrainingArguments(output_dir=str(out), max_steps=4, eval_strategy="steps", eval_steps=2, save_strategy="no", learning_rate=0.01, per_device_train_batch_size=2,
    per_device_eval_batch_size=2, logging_steps=1, report_to=[], disable_tqdm=True, **more)
greedy = {"do_sample": False, "num_beams": 3, "max_new_tokens": 8}
callbacks = []
if "--none" not in sys.argv:
    generation = greedy if "--greedy" in sys.argv else {"max_new_tokens": 24, "top_k": 0, "eos_token_id": list(range(1,16))}
    callbacks = [text_metrics.SampleCallback({"self_bleu": {"max_order": 2}}, PROMPTS, n=2, generation=generation)]
model = build_causal(tokenizer)
rows = [dict(tokenizer(f"{p} the cat sleeps .")) for p in PROMPTS[:4]]
trainer = Trainer(model=model, args=args, callbacks=callbacks, train_dataset=rows, eval_dataset=rows, processing_class=tokenizer, data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False))
trainer.train()
if os.environ.get("RANK", "0") == "0":
    n = sum(p.numel() for p in trainer.model.parameters())
    print(kind, type(trainer.model_wrapped).__name__, "parameters held", n, [round(e["eval_loss"], 6) for e in trainer.state.log_history if "eval_loss" in e], [round(e["eval_self_bleu"], 6) for e in trainer.state.log_history if "eval_self_bleu" in e])
    w = trainer.model_wrapped
    if kind == "zero3":
        p = next(iter(w.module.parameters()))
        print("stage", w.zero_optimization_stage(), type(p), getattr(p, "ds_numel", None), getattr(p, "ds_status", None), p.shape, "world", torch.distributed.get_world_size(), trainer.accelerator.distributed_type)
    else: print(type(w), trainer.accelerator.distributed_type, [type(p).__name__ for p in list(w.parameters())[:2]])
print("SUM", repr(sum(p.detach().double().sum().item() if not hasattr(p, "full_tensor") else p.full_tensor().double().sum().item() for p in trainer.model.parameters())))
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
